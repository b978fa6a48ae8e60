// Express without the two header fields that it adds by itself.
import { listen, require, workload } from './common.js'

const app = require('express')()
app.disable('x-powered-by')
app.disable('etag')

const answerUser = (request, response) => response.json({ id: request.params.id, name: 'Ada' })

const add = {
  text() {
    app.get('/text', (request, response) => response.type('text/plain').send('Hello, World!'))
  },
  json() {
    app.get('/users/:id', answerUser)
  },
  middlewares() {
    let count = 0
    app.use((request, response, next) => {
      request.startedAt = performance.now()
      next()
    })
    app.use((request, response, next) => {
      request.agent = request.headers['user-agent']
      next()
    })
    app.use((request, response, next) => {
      request.language = request.headers['accept-language'] ?? 'en'
      next()
    })
    app.use((request, response, next) => {
      count += 1
      request.count = count
      next()
    })
    app.use((request, response, next) => {
      response.setHeader('X-Frame-Options', 'DENY')
      next()
    })
    app.get('/users/:id', answerUser)
  },
  404() {
    app.use((request, response) => {
      response.status(404).json({ error: 'not_found', detail: `Nothing is here: ${request.path}` })
    })
  },
}

add[workload.name]()
listen(app)
