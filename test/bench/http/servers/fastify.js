// Fastify as its documentation advises: a schema for JSON, plugins for the rest.
import { join } from 'node:path'
import { folder, keepAliveMs, name, ready, require, tls, workload } from './common.js'

const { fields, status, data, path, coding } = workload
const type = fields['Content-Type']
const secret = 'a secret of at least 32 characters'

const loggers = {
  'fastify, logger': { sync: true },
  'fastify, logger buffered': { sync: false, minLength: 4096 },
}
const https = tls === undefined ? {} : { https: tls }
const app = require('fastify')({ keepAliveTimeout: keepAliveMs, logger: loggerOf(loggers[name]), ...https })

const text = { type: 'string' }
const userSchema = { schema: { response: { 200: { type: 'object', properties: { id: text, name: text } } } } }
const answerUser = (request, reply) => reply.send({ id: request.params.id, name: 'Ada' })

const add = {
  compressed() {
    const rows = JSON.parse(workload.body)
    app.register(require('@fastify/compress'))
    app.after(() => app.get(path, (request, reply) => reply.send(rows)))
  },
  text() {
    app.get(path, (request, reply) => reply.type(type).send('Hello, World!'))
  },
  json() {
    app.get('/users/:id', userSchema, answerUser)
  },
  middlewares() {
    let count = 0
    app.decorateRequest('startedAt', 0)
    app.decorateRequest('agent', '')
    app.decorateRequest('language', '')
    app.decorateRequest('count', 0)
    app.addHook('onRequest', (request, reply, done) => {
      request.startedAt = performance.now()
      done()
    })
    app.addHook('onRequest', (request, reply, done) => {
      request.agent = request.headers['user-agent']
      done()
    })
    app.addHook('onRequest', (request, reply, done) => {
      request.language = request.headers['accept-language'] ?? 'en'
      done()
    })
    app.addHook('onRequest', (request, reply, done) => {
      count += 1
      request.count = count
      done()
    })
    app.addHook('onRequest', (request, reply, done) => {
      reply.header('X-Frame-Options', 'DENY')
      done()
    })
    app.get('/users/:id', userSchema, answerUser)
  },
  session() {
    app.register(require('@fastify/cookie'))
    app.register(require('@fastify/session'), {
      secret,
      rolling: false,
      saveUninitialized: false,
      cookie: { secure: false, maxAge: 3_600_000 },
    })
    app.get('/begin', (request, reply) => {
      request.session.set('user', 'Ada')
      reply.type('text/html; charset=utf-8').send('here')
    })
    const schema = { response: { 200: { type: 'object', properties: { user: text } } } }
    app.get(path, { schema }, (request, reply) => {
      reply.header('Cache-Control', 'private').send({ user: request.session.get('user') })
    })
  },
  form() {
    app.register(require('@fastify/cookie'))
    app.register(require('@fastify/formbody'))
    app.register(require('@fastify/csrf-protection'))
    app.after(() => {
      app.get('/begin', (request, reply) => {
        reply.type('text/html; charset=utf-8').send(`<input name="_csrf" value="${reply.generateCsrf()}">`)
      })
      const schema = { response: { 200: { type: 'object', properties: { thanks: text } } } }
      app.post(path, { schema, preHandler: app.csrfProtection }, (request, reply) => {
        reply.send({ thanks: request.body.name })
      })
    })
  },
  validate() {
    app.register(require('@fastify/formbody'))
    const size = { type: 'integer', minimum: 1, maximum: 100 }
    const due = { type: 'string', format: 'date' }
    const title = { type: 'string', minLength: 1, maxLength: 80 }
    const email = { type: 'string', format: 'email', maxLength: 254 }
    const properties = { title, email, size, due, done: { type: 'boolean' } }
    const body = { type: 'object', required: ['title', 'email', 'size', 'due', 'done'], properties }
    const response = {
      200: {
        type: 'object',
        properties: { title: text, email: text, size: { type: 'integer' }, due: text, done: { type: 'boolean' } },
      },
    }
    app.post(path, { schema: { body, response } }, (request, reply) => reply.send(request.body))
  },
  view() {
    app.register(require('@fastify/view'), { engine: { ejs: require('ejs') }, root: folder, production: true })
    app.get(path, (request, reply) => reply.type(type).header('Vary', fields.Vary).view('page.ejs', data))
  },
  static() {
    app.register(require('@fastify/static'), {
      root: join(folder, 'public'),
      cacheControl: false,
      setHeaders: (response) => {
        response.header('Cache-Control', fields['Cache-Control'])
        response.header('X-Content-Type-Options', 'nosniff')
      },
    })
  },
  404() {
    app.setNotFoundHandler((request, reply) => {
      reply.code(status).send({ error: 'not_found', detail: `Nothing is here: ${request.url}` })
    })
  },
}

add.tls = add['tls-new'] = add.json
add[coding === '' ? workload.name : 'compressed']()
await app.listen({ port: 0, host: '127.0.0.1' })
ready(app.server.address().port)

/** pino to a file, as fast as the options of its destination make it. */
function loggerOf(options) {
  if (options === undefined) return false
  return { stream: require('pino').destination({ dest: join(folder, 'fastify.log'), ...options }) }
}
