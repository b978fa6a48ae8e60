// Koa with its router.
import { listen, require, workload } from './common.js'

const Koa = require('koa')
const { default: named, ...all } = require('@koa/router')
const Router = named ?? all.Router
const app = new Koa()
const router = new Router()

const answerUser = (ctx) => {
  ctx.body = { id: ctx.params.id, name: 'Ada' }
}

const add = {
  text() {
    router.get('/text', (ctx) => {
      ctx.body = 'Hello, World!'
    })
  },
  json() {
    router.get('/users/:id', answerUser)
  },
  middlewares() {
    let count = 0
    app.use((ctx, next) => {
      ctx.state.startedAt = performance.now()
      return next()
    })
    app.use((ctx, next) => {
      ctx.state.agent = ctx.headers['user-agent']
      return next()
    })
    app.use((ctx, next) => {
      ctx.state.language = ctx.headers['accept-language'] ?? 'en'
      return next()
    })
    app.use((ctx, next) => {
      count += 1
      ctx.state.count = count
      return next()
    })
    app.use((ctx, next) => {
      ctx.set('X-Frame-Options', 'DENY')
      return next()
    })
    router.get('/users/:id', answerUser)
  },
  404() {
    app.use(router.routes()).use((ctx) => {
      ctx.status = 404
      ctx.body = { error: 'not_found', detail: `Nothing is here: ${ctx.path}` }
    })
  },
}

add[workload.name]()
app.use(router.routes())
listen(app.callback())
