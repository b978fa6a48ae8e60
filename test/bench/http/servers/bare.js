// Bare node:http: the least that a program can do to send the same answer.
import * as zlib from 'node:zlib'
import { listen, readPhoto, workload } from './common.js'

const { name, status, fields, coding } = workload
const body = name === 'static' ? readPhoto() : workload.body
const zstdLevel = { params: { [zlib.constants.ZSTD_c_compressionLevel]: 1 } }
const constantFields = { ...fields, 'Content-Length': Buffer.byteLength(body) }

const type = fields['Content-Type']
const rows = coding === '' ? undefined : JSON.parse(body)

const handlers = {
  compressed(request, response) {
    const text = JSON.stringify(rows)
    const bytes = coding === 'zstd' ? zlib.zstdCompressSync(text, zstdLevel) : zlib.gzipSync(text, { level: 1 })
    response.writeHead(200, { ...fields, 'Content-Length': bytes.length })
    response.end(bytes)
  },
  json(request, response) {
    const text = JSON.stringify({ id: request.url.slice(7), name: 'Ada' })
    response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(text) })
    response.end(text)
  },
  middlewares(request, response) {
    const text = JSON.stringify({ id: request.url.slice(7), name: 'Ada' })
    const length = Buffer.byteLength(text)
    response.writeHead(200, { 'X-Frame-Options': 'DENY', 'Content-Type': type, 'Content-Length': length })
    response.end(text)
  },
  form(request, response) {
    request.resume()
    request.on('end', () => constant(request, response))
  },
  validate(request, response) {
    handlers.form(request, response)
  },
}

handlers.tls = handlers['tls-new'] = handlers.json
listen(handlers[coding === '' ? name : 'compressed'] ?? constant)

function constant(request, response) {
  response.writeHead(status, constantFields)
  response.end(body)
}
