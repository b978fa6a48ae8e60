// Hono on Node's server.
import { keepAliveMs, ready, require, workload } from './common.js'

const { Hono } = require('hono')
const { serve } = require('@hono/node-server')
const app = new Hono()

const answerUser = (c) => c.json({ id: c.req.param('id'), name: 'Ada' })

const add = {
  text() {
    app.get('/text', (c) => c.text('Hello, World!'))
  },
  json() {
    app.get('/users/:id', answerUser)
  },
  middlewares() {
    let count = 0
    app.use((c, next) => {
      c.set('startedAt', performance.now())
      return next()
    })
    app.use((c, next) => {
      c.set('agent', c.req.header('user-agent'))
      return next()
    })
    app.use((c, next) => {
      c.set('language', c.req.header('accept-language') ?? 'en')
      return next()
    })
    app.use((c, next) => {
      count += 1
      c.set('count', count)
      return next()
    })
    app.use((c, next) => {
      c.header('X-Frame-Options', 'DENY')
      return next()
    })
    app.get('/users/:id', answerUser)
  },
  404() {
    app.notFound((c) => c.json({ error: 'not_found', detail: `Nothing is here: ${c.req.path}` }, 404))
  },
}

add[workload.name]()
const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => ready(port))
server.keepAliveTimeout = keepAliveMs
