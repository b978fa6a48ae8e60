// Handlers of static files on bare node:http, told to send the same header fields.
import { join } from 'node:path'
import { folder, listen, name, require, workload } from './common.js'

const root = join(folder, 'public')
const setHeaders = (response) => {
  response.setHeader('Cache-Control', workload.fields['Cache-Control'])
  response.setHeader('X-Content-Type-Options', 'nosniff')
  response.setHeader('Accept-Ranges', 'bytes')
}
const makers = {
  sirv: () => require('sirv')(root, { dev: false, etag: true, setHeaders }),
  'serve-static': () => require('serve-static')(root, { cacheControl: false, setHeaders }),
}

const serve = makers[name]()
listen((request, response) => {
  serve(request, response, () => {
    response.writeHead(404).end()
  })
})
