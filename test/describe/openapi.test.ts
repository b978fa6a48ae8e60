// The OpenAPI description of an application, as its route answers it.
import assert from 'node:assert/strict'
import { before, after, describe, it, test } from 'node:test'
import type { ApplicationParts } from '../../lib/composition/application-parts.ts'
import { describeApplication } from '../../lib/describe/openapi.ts'
import { parsePattern } from '../../lib/routing/pattern.ts'
import type { Route } from '../../lib/routing/route.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { request } from '../support/request.ts'
import { files } from './application.ts'

interface Operation {
  readonly operationId: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: unknown; readonly description?: string }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: unknown }>> }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Readonly<Record<string, { readonly schema?: unknown }>> }>>
  readonly security?: readonly unknown[]
}
interface Document {
  readonly info: unknown
  readonly tags: unknown
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>>; readonly securitySchemes: unknown }
}

const cleanups: (() => Promise<void>)[] = []
after(async () => {
  for (const clean of cleanups) await clean()
})

describe('the description of an application', () => {
  let server: TestApplication
  let document: Document
  let parts: ApplicationParts | undefined
  before(async () => {
    const t = { after: (clean: () => Promise<void>) => void cleanups.push(clean) } as Parameters<typeof startApplication>[0]
    server = await startApplication(t, files, {}, { addRoutes: (built) => (parts = built) })
    document = (await request(`${server.url}/api/openapi.json`)).json() as Document
  })
  const operation = (method: string, path: string): Operation => document.paths[path]?.[method] ?? assert.fail(`${method} ${path}`)

  it('has the operations of all routes but hidden and system ones, with unique ids', () => {
    const all = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${method} ${path} ${operationId}`))
    assert.deepEqual(all, [
      'get /api/notes note.list', 'post /api/notes note.add', 'get /api/notes/{id} note.show', 'delete /api/notes/{id} note.remove', 'get /api/tree note.tree',
      'get / home', 'get /any any', 'get /both both.get', 'post /both both.post', 'get /other both.get.2', 'get /files/{path} files', 'post /form form',
      'post /upload upload', 'get /socket socket', 'post /opaque opaque', 'get /deep deep', 'post /referring/{id} referring',
    ])
    assert.deepEqual(document.info, { title: 'notes', version: '1.2.3' })
  })

  it('has what records and actions say about themselves, of which records come first', () => {
    const { summary, description, deprecated, tags } = operation('get', '/api/notes') as unknown as Record<string, unknown>
    assert.deepEqual([summary, description, deprecated, tags], ['Lists', 'All of them.', true, ['note']])
    const own = operation('get', '/api/notes/{id}') as unknown as Record<string, unknown>
    assert.deepEqual([own['summary'], own['description']], ['Shows', 'One.'])
    assert.deepEqual(document.tags, ['note', 'any', 'both', 'files', 'form', 'upload', 'socket', 'opaque', 'deep', 'referring'].map((name) => ({ name })))
  })

  it('has the parameters of path and query', () => {
    assert.deepEqual(operation('get', '/api/notes').parameters, [
      { name: 'page', in: 'query', required: true, schema: { type: 'integer', minimum: 1 } },
      { name: 'all', in: 'query', schema: { type: 'boolean' } },
      { name: 'tags', in: 'query', schema: { type: 'array', maxItems: 1000, items: { type: 'string', minLength: 1 } } },
    ])
    assert.deepEqual(operation('get', '/api/notes/{id}').parameters, [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }])
    // Its pattern names it `key`; OpenAPI has one name for both.
    assert.deepEqual(operation('delete', '/api/notes/{id}').parameters, [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }])
    const [rest] = operation('get', '/files/{path}').parameters ?? []
    assert.match(rest?.description ?? '', /slashes/)
  })

  it('has bodies as JSON and, where their inputs are flat, as forms; with files as multipart only', () => {
    const types = (path: string) => Object.keys(operation('post', path).requestBody?.content ?? {})
    assert.deepEqual(types('/api/notes'), ['application/json', 'application/x-www-form-urlencoded'])
    assert.deepEqual(types('/upload'), ['multipart/form-data'])
    const form = operation('post', '/form').requestBody?.content['application/x-www-form-urlencoded']?.schema
    assert.deepEqual(form, {
      type: 'object',
      properties: {
        title: { type: 'string', minLength: 1, maxLength: 80 },
        tags: { type: 'array', maxItems: 1000, items: { type: 'string', minLength: 1 } },
        done: { type: 'boolean', default: false },
        size: { type: 'string', enum: ['s', 'm'] },
        token: { type: 'string', description: 'The CSRF token, unless the header field has it.' },
      },
      required: ['title'],
    })
    assert.deepEqual(operation('post', '/upload').requestBody?.content['multipart/form-data']?.schema, {
      type: 'object',
      properties: { picture: { contentMediaType: 'image/png', maxLength: 1024 }, note: { type: 'string' } },
      required: ['picture'],
    })
  })

  it('has the declared replies, in which a default is always there', () => {
    const { responses } = operation('post', '/api/notes')
    assert.deepEqual(Object.keys(responses), ['201', '401', '422', 'default'])
    assert.deepEqual(responses['201']?.content?.['application/json']?.schema, {
      type: 'object',
      properties: {
        id: { type: 'integer' },
        title: { type: 'string', maxLength: 80 },
        tags: { type: 'array', maxItems: 1000, items: { type: 'string' } },
        done: { type: 'boolean' },
        due: { type: ['string', 'null'], format: 'date' },
      },
      required: ['id', 'title', 'tags', 'done'],
    })
    const rows: readonly (readonly [method: string, path: string, responses: readonly string[]])[] = [
      ['delete', '/api/notes/{id}', ['204', 'default']],
      ['get', '/api/notes/{id}', ['200', '429', 'default']],
      ['get', '/', ['200', 'default']],
      ['get', '/any', ['2XX', 'default']],
      ['get', '/socket', ['101', 'default']],
      ['post', '/form', ['2XX', '302', '303', '401', '403', '422', 'default']],
    ]
    for (const [method, path, statuses] of rows) assert.deepEqual(Object.keys(operation(method, path).responses).sort(), [...statuses].sort(), path)
    assert.deepEqual(Object.keys(operation('get', '/').responses['200']?.content ?? {}), ['text/html'])
    assert.deepEqual(operation('delete', '/api/notes/{id}').responses['204'], { description: 'No Content' })
  })

  it('has errors in the formats of the route', () => {
    const types = (path: string) => Object.keys(operation('get', path).responses['default']?.content ?? {})
    assert.deepEqual([types('/api/notes'), types('/')], [['application/json'], ['application/json', 'text/html']])
  })

  it('has the security of the middleware, by the names that its settings choose', () => {
    assert.deepEqual(operation('post', '/api/notes').security, [{ bearer: [] }])
    assert.deepEqual(operation('post', '/form').security, [{ session: [] }])
    assert.equal(operation('get', '/any').security, undefined)
    assert.deepEqual(operation('post', '/form').parameters?.map(({ name, in: place }) => [name, place]), [['X-Token', 'header']])
    assert.deepEqual(document.components.securitySchemes, {
      bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
      session: { type: 'apiKey', in: 'cookie', name: 'notes' },
    })
  })

  it('has the schema of another library as a component, with its own references', () => {
    const place = '#/components/schemas/note.tree.answer.200'
    assert.deepEqual(operation('get', '/api/tree').responses['200']?.content?.['application/json']?.schema, { $ref: place })
    assert.deepEqual(document.components.schemas['note.tree.answer.200'], {
      type: 'object', properties: { left: { $ref: place }, right: { $ref: `${place}/$defs/leaf` } }, $defs: { leaf: { type: 'string' } },
    })
  })

  it('has no reference that leads out of its schema', () => {
    const { parameters, requestBody } = operation('post', '/referring/{id}')
    assert.deepEqual(parameters?.map(({ name, in: place, schema }) => [name, place, schema]), [['id', 'path', { type: 'string' }]])
    assert.deepEqual(Object.keys(requestBody?.content ?? {}), ['application/json'])
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#([^"]*)"/g)].map(([, path = '']) => path)
    assert.ok(references.length > 10)
    for (const path of new Set(references)) {
      const found = path.split('/').slice(1).reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document)
      assert.notEqual(found, undefined, path)
    }
  })

  it('reports what cannot be described, and describes the rest', async () => {
    assert.deepEqual((await parts?.describe())?.problems, [
      'route "strange": OpenAPI 3.1 has no method PROPFIND',
      'route "shadowed": GET /both is described by an earlier route',
      'route "opaque": body has no JSON Schema: its library does not implement Standard JSON Schema',
      'route "opaque": query has no JSON Schema: its JSON Schema has a function as "default"',
      'route "opaque": answer 200 has no JSON Schema: transforms cannot be represented',
      'route "deep": query "where" has parts, which OpenAPI cannot describe as a parameter',
      'route "referring": query "id" has parts, which OpenAPI cannot describe as a parameter',
    ])
  })
})

test('follows the routes: those added and removed while the server runs, and modules that appear', async (t) => {
  const { url, write, app } = await startApplication(t, {
    'routes/a.json': [
      { name: 'description', url: '/openapi', action: 'svc:openapi' },
      { name: 'late', url: '/late', method: 'POST', action: 'late.mjs' },
    ],
  })
  const read = async () => ((await request(`${url}/openapi`)).json() as Document).paths
  assert.deepEqual(Object.keys(await read()), ['/openapi', '/late'])
  assert.equal((await read())['/late']?.['post']?.requestBody, undefined)
  write({ 'late.mjs': "import { action, fields } from 'svc'\nexport default action({ body: fields({ a: fields.text() }) }, () => 'late')" })
  assert.equal((await request(`${url}/late`, { body: '{"a":"b"}', headers: { 'content-type': 'application/json' } })).status, 200)
  assert.notEqual((await read())['/late']?.['post']?.requestBody, undefined)
  await app.control.apply({ type: 'routes.add', record: { name: 'more', url: '/more', action: 'late.mjs' }, persist: false })
  assert.deepEqual(Object.keys(await read()), ['/openapi', '/late', '/more'])
})

test('describes a route for each shape of a path once', () => {
  const route = (name: string, url: string): Route<unknown> => {
    const record = { name, url, method: 'GET', action: 'a.mjs', middleware: '', scope: '' }
    return { record, pattern: parsePattern(url), system: false, target: undefined }
  }
  const routes = [route('a', '/x/:one/y'), route('b', '/x/:two'), route('c', '/x/%7Bone%7D'), route('d', '/')]
  const { document, problems } = describeApplication({ routes, folder: '/nowhere/app', setup: {} })
  assert.deepEqual(Object.keys((document as Document).paths), ['/x/{one}/y', '/x/{two}', '/x/%7Bone%7D', '/'])
  assert.deepEqual([(document as Document).info, problems], [{ title: 'app', version: '0.0.0' }, []])
})
