// The servers that the HTTP benchmark compares: `node http-servers.js NAME` prints the port it listens on.
// All answer GET /users/:id with the same JSON and the same header fields.
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const require = createRequire(fileURLToPath(new URL('./peers/package.json', import.meta.url)))
const type = 'application/json; charset=utf-8'
const logFile = process.argv[3]

const servers = {
  bare() {
    const server = createServer((request, response) => {
      const body = JSON.stringify({ id: request.url.slice(7), name: 'Ada' })
      response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
      response.end(body)
    })
    server.keepAliveTimeout = 65_000
    server.listen(0, '127.0.0.1', () => ready(server.address().port))
  },
  fastify: () => fastify(false),
  // minLength 0 is the default: a line is written as it comes. The fastest destination that pino has for a file.
  'fastify, logger': () => fastify({ stream: require('pino').destination({ dest: logFile, sync: true }) }),
  hono() {
    const { Hono } = require('hono')
    const { serve } = require('@hono/node-server')
    const app = new Hono()
    app.get('/users/:id', (c) => c.json({ id: c.req.param('id'), name: 'Ada' }))
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => ready(port))
  },
  koa() {
    const Koa = require('koa')
    const Router = require('@koa/router')
    const router = new (Router.default ?? Router)()
    router.get('/users/:id', (ctx) => {
      ctx.body = { id: ctx.params.id, name: 'Ada' }
    })
    const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => ready(server.address().port))
  },
  express() {
    const app = require('express')()
    app.get('/users/:id', (request, response) => response.json({ id: request.params.id, name: 'Ada' }))
    const server = app.listen(0, '127.0.0.1', () => ready(server.address().port))
  },
}

async function fastify(logger) {
  const app = require('fastify')({ logger })
  app.get('/users/:id', (request, reply) => reply.send({ id: request.params.id, name: 'Ada' }))
  await app.listen({ port: 0, host: '127.0.0.1' })
  ready(app.server.address().port)
}

function ready(port) {
  console.log(`port ${port}`)
}

servers[process.argv[2]]()
