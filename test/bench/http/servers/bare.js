// Bare node:http: the least that a program can do to send the same answer.
import { createServer } from 'node:http'
import { listen, readPhoto, workload } from './common.js'

const { name, status, fields } = workload
const body = name === 'static' ? readPhoto() : workload.body
const constantFields = { ...fields, 'Content-Length': Buffer.byteLength(body) }

const type = fields['Content-Type']

const handlers = {
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

listen(createServer(handlers[name] ?? constant))

function constant(request, response) {
  response.writeHead(status, constantFields)
  response.end(body)
}
