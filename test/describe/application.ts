/** An application with everything that a description may have. */
import type { Files } from '../support/application.ts'

const record = (name: string, url: string, method: string, action: string, more: object = {}): object => ({ name, url, method, action, ...more })

/** Its files. */
export const files: Files = {
  'package.json': { name: 'notes', version: '1.2.3' },
  'routes/middleware/config.json': { load: [], setup: { limit: { api: { count: 1000 } }, csrf: { field: 'token', header: 'X-Token' }, session: { cookie: 'notes' }, jwt: { key: 'a secret of thirty-two characters' } } },
  'routes/api.json': {
    defaults: { prefix: '/api', error_format: 'json' },
    routes: [
      record('note.list', '/notes', 'GET', 'api.mjs', { summary: 'Lists', description: 'All of them.', deprecated: true }),
      record('note.add', '/notes', 'POST', 'api.mjs@add', { middleware: 'SVC_MwJwt' }),
      record('note.show', '/notes/:id', 'GET', 'api.mjs@show', { middleware: 'SVC_MwLimit:api' }),
      record('note.remove', '/notes/:key', 'DELETE', 'api.mjs@remove'),
      record('note.tree', '/tree', 'GET', 'api.mjs@tree'),
      record('description', '/openapi.json', 'GET', 'svc:openapi', { hidden: true }),
    ],
  },
  'routes/pages.json': [
    record('home', '/', 'GET', 'home.html'),
    record('any', '/any', '*', 'api.mjs@plain'),
    record('both', '/both', 'GET,POST', 'api.mjs@plain'),
    record('both.get', '/other', 'GET', 'api.mjs@plain'),
    record('files', '/files/*path', 'GET', 'api.mjs@plain'),
    record('form', '/form', 'POST', 'api.mjs@form', { middleware: 'SVC_MwSession, SVC_MwIsAuth, SVC_MwCsrf' }),
    record('upload', '/upload', 'POST', 'api.mjs@upload'),
    record('socket', '/socket', '*', 'socket.mjs'),
    record('strange', '/strange', 'PROPFIND', 'api.mjs@plain'),
    record('shadowed', '/both', 'GET', 'api.mjs@plain'),
    record('opaque', '/opaque', 'POST', 'api.mjs@opaque'),
    record('deep', '/deep', 'GET', 'api.mjs@deep'),
    record('referring', '/referring/:id', 'POST', 'api.mjs@referring'),
  ],
  'home.html': '<p>home</p>',
  'socket.mjs': 'export const websocket = { message(ws, data) { ws.send(data) } }',
  'api.mjs': `
    import { action, fields } from 'svc'
    const note = { title: fields.text({ max: 80 }), tags: fields.list(fields.text()), done: fields.boolean().default(false) }
    const stored = fields.object({ id: fields.integer(), ...note, due: fields.date().optional() })
    const standard = (jsonSchema) => ({ '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }), ...jsonSchema } })
    const tree = standard({ jsonSchema: {
      input: () => ({}),
      output: ({ target }) => ({
        $schema: target, type: 'object', properties: { left: { $ref: '#' }, right: { $ref: '#/$defs/leaf' } }, $defs: { leaf: { type: 'string' } },
      }),
    } })
    export default action({ query: fields({ page: fields.integer({ min: 1 }), all: fields.boolean(), tags: fields.list(fields.text()).optional() }), answer: fields.list(stored) }, () => [])
    export const add = action({ body: fields(note), answer: { 201: stored } }, () => ({}))
    export const show = action({ params: fields({ id: fields.integer() }), answer: stored, summary: 'Shows', description: 'One.' }, () => ({}))
    export const remove = action({ answer: { 204: null } }, () => undefined)
    export { ofTree as tree }
    const ofTree = action({ answer: tree }, () => ({}))
    export const plain = () => 'plain'
    export const form = action({ body: fields({ ...note, size: fields.choice('s', 'm').optional() }) }, () => 'saved')
    export const upload = action({ body: fields({ picture: fields.file({ types: ['image/png'], maxKb: 1 }), note: fields.text().optional() }) }, () => 'saved')
    export const opaque = action({
      body: standard({}),
      query: standard({ jsonSchema: { input: () => ({ type: 'object', default: () => 7 }), output: () => ({}) } }),
      answer: standard({ jsonSchema: { input: () => ({}), output: () => { throw new Error('transforms cannot be represented') } } }),
    }, () => '')
    const referred = standard({ jsonSchema: {
      input: () => ({ type: 'object', properties: { id: { $ref: '#/$defs/id' } }, $defs: { id: { type: 'string' } } }),
      output: () => ({}),
    } })
    export const referring = action({ params: referred, query: referred, body: referred }, () => '')
    export const deep = action({ query: fields({ where: fields.object({ city: fields.text() }), page: fields.integer() }) }, () => '')
  `,
}
