/**
 * The process whose allocations `allocations.slow.test.ts` counts: svc with its logs on, or bare `node:http` with the same answer.
 * Each message asks for the bytes of heap in use; nothing is collected in between, since the young generation holds all.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createApp } from '../../lib/index.ts'

const [name, folder = ''] = process.argv.slice(2)
const port = name === 'bare' ? await startBare() : await startSvc()
process.on('message', (what: 'collect' | 'read') => {
  if (what === 'collect') (globalThis as { gc?: () => void }).gc?.()
  process.send?.(process.memoryUsage().heapUsed)
})
process.send?.(port)

function startBare(): Promise<number> {
  const server = createServer((request, response) => {
    const body = JSON.stringify({ id: request.url?.slice(7), name: 'Ada' })
    response.writeHead(200, ['Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(body.length)])
    response.end(body)
  })
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
}

async function startSvc(): Promise<number> {
  const routes = [
    { name: 'user', url: '/users/:id', action: 'user.mjs' },
    { name: 'layers', url: '/layer/:id', action: 'user.mjs', middleware: 'one,two,three,four,five' },
    { name: 'sign-in', url: '/sign-in', action: 'user.mjs@signIn', middleware: 'SVC_MwSession' },
    { name: 'session', url: '/session', action: 'user.mjs@session', middleware: 'SVC_MwSession' },
    { name: 'view', url: '/view', action: 'user.mjs@view' },
  ]
  const files = {
    'routes/all.json': JSON.stringify(routes),
    'routes/middleware/config.json': JSON.stringify({ load: ['layers.mjs'] }),
    'routes/middleware/layers.mjs': ['one', 'two', 'three', 'four', 'five']
      .map((layer) => `export const ${layer} = (ctx, next) => next()\n`)
      .join(''),
    'user.mjs': `export default ({ params }) => ({ id: params.id, name: 'Ada' })
      export const signIn = ({ session }) => { session.set('name', 'Ada'); return 'signed in' }
      export const session = ({ session }) => ({ name: session.get('name') })
      export const view = (ctx) => ctx.view('page.html', { title: 'A & B', names: ['Ada', '<Grace>'] })\n`,
    'page.html': '<h1>{{ title }}</h1>\n@foreach name in names\n<p>{{ name }}</p>\n@endforeach\n',
    'public/file.txt': 'text\n'.repeat(100),
  }
  mkdirSync(join(folder, 'routes/middleware'), { recursive: true })
  mkdirSync(join(folder, 'public'))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text)
  const config = { app_key: 'cost', server: { port: 0 }, paths: { public: 'public' }, log: { console: false } }
  const { port } = await createApp({ config, folder }).start()
  return port
}
