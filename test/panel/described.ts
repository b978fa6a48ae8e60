/** An application whose routes declare their input, for tests of its description. */
import type { Files } from '../support/application.ts'

export const described: Files = {
  'routes/tasks.json': [
    { name: 'task.list', url: '/tasks', method: 'GET', action: 'tasks.mjs@list' },
    { name: 'task.show', url: '/tasks/:id', method: 'GET', action: 'tasks.mjs@show', deprecated: true },
    { name: 'task.add', url: '/tasks', method: 'POST', action: 'tasks.mjs@add', summary: 'Adds a <b>task</b>' },
    { name: 'task.upload', url: '/tasks/:id/files', method: 'POST', action: 'tasks.mjs@upload', middleware: 'SVC_MwSession,SVC_MwCsrf' },
    { name: 'task.follow', url: '/tasks/:id/news', method: 'GET', action: 'tasks.mjs@follow' },
    { name: 'secret.token', url: '/secret', method: 'GET', action: 'tasks.mjs@token', middleware: 'SVC_MwJwt' },
    { name: 'secret.mine', url: '/mine', method: 'GET', action: 'tasks.mjs@token', middleware: 'SVC_MwSession,SVC_MwIsAuth' },
    { name: '"><script>alert(1)</script>', url: '/odd', method: 'GET', action: 'tasks.mjs@list', description: '</p><script>alert(2)</script>' },
    { name: 'hidden', url: '/hidden', method: 'GET', action: 'tasks.mjs@list', hidden: true },
  ],
  'routes/middleware/config.json': { setup: { jwt: { key: 'x'.repeat(32) } } },
  'tasks.mjs': `
    import { action, fields } from 'svc'
    const task = fields({
      title: fields.text({ max: 80 }),
      state: fields.choice(['open', 'done']).default('open'),
      points: fields.integer({ min: 1, max: 5 }).optional(),
      tags: fields.list(fields.text({ max: 20 }), { max: 3 }),
      steps: fields.list(fields.object({ name: fields.text(), done: fields.boolean() })),
    })
    const query = fields({ words: fields.list(fields.text()), limit: fields.integer({ min: 1 }).default(10) })
    export const list = action({ query, answer: fields({ words: fields.list(fields.text()) }) }, (ctx, { query }) => query)
    export const show = action({ params: fields({ id: fields.integer() }), summary: 'Shows one' }, (ctx, { params }) => params)
    export const add = action({ body: task, answer: { 201: task } }, (ctx, { body }) => ctx.json(body, 201))
    export const upload = action({ body: fields({ note: fields.text().optional(), file: fields.file({ types: ['image/*'] }) }) }, () => 'ok')
    export const follow = async (ctx) => new Response(new ReadableStream({ start(stream) { stream.enqueue('first\\n') } }), { headers: { 'content-type': 'text/plain' } })
    export const token = (ctx) => ({ authorization: ctx.header('authorization') ?? '' })
  `,
}
