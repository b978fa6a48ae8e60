import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

describe('ctx.url', () => {
  it('returns the path of a named route, in actions and in views', async (t) => {
    const { url } = await startApplication(t, {
      'routes/a.json': [
        { name: 'a', url: '/a', action: 'a.mjs' },
        { name: 'note', url: '/notes/:id/*rest', action: 'a.html' },
      ],
      'a.mjs': "export default ({ url }) => [url('a'), url('note', { id: 'ä/b', rest: 'c/d e' }), url('note', { id: 5, rest: '' })]",
      'a.html': "{{ url('note', { id: params.id, rest: 'x' }) }}",
    })
    assert.deepEqual((await request(`${url}/a`)).json(), ['/a', '/notes/%C3%A4%2Fb/c/d%20e', '/notes/5/'])
    assert.equal((await request(`${url}/notes/7/`)).text.trim(), '/notes/7/x')
  })

  it('throws for an unknown route, and for a missing parameter', async (t) => {
    const { url, lines } = await startApplication(t, {
      'routes/a.json': [
        { name: 'a', url: '/a', action: 'a.mjs' },
        { name: 'b', url: '/b/:id', action: 'a.mjs@missing' },
      ],
      'a.mjs': "export default ({ url }) => url('none'); export const missing = ({ url }) => url('b')",
    })
    assert.deepEqual([(await request(`${url}/a`)).status, (await request(`${url}/b/1`)).status], [500, 500])
    const log = lines().join('\n')
    assert.match(log, /GET \/a \(a\): Cannot build the path of route "none": no route has that name/)
    assert.match(log, /GET \/b\/1 \(b\): .*id/)
  })
})

describe('ctx.redirect', () => {
  it('goes to a named route', async (t) => {
    const { url, lines } = await startApplication(t, {
      'routes/a.json': [
        { name: 'a', url: '/a', action: 'a.mjs' },
        { name: 'note', url: '/notes/:id', action: 'a.mjs' },
      ],
      'a.mjs': `export default ({ redirect, query }) => redirect(JSON.parse(query.get('to')), Number(query.get('status') ?? 302))`,
    })
    const ask = async (to: unknown, status = 302) => {
      const answer = await request(`${url}/a?status=${status}&to=${encodeURIComponent(JSON.stringify(to))}`)
      return [answer.status, answer.headers.location]
    }
    assert.deepEqual(await ask({ route: 'note', params: { id: 'ä/b' } }, 303), [303, '/notes/%C3%A4%2Fb'])
    assert.deepEqual(await ask({ route: 'a' }), [302, '/a'])
    for (const wrong of [{ route: 'none' }, { route: 'note' }, { route: 'a', params: { id: 1 } }, {}, null, 7]) {
      assert.deepEqual(await ask(wrong), [500, undefined], JSON.stringify(wrong))
    }
    assert.match(lines().join('\n'), /A redirect goes to a URL, or to a route: \{ route, params \}/)
  })
})

describe('app.url', () => {
  it('returns the path of a named route, in setup too once the routes exist', async (t) => {
    const { app, url } = await startApplication(t, {
      'routes/a.json': [{ name: 'note', url: '/notes/:id', action: 'a.mjs' }],
      'routes/middleware/config.json': { load: ['m.mjs'] },
      'routes/middleware/m.mjs': 'export const setup = (app) => void (globalThis.urlOfNote = () => app.url("note", { id: 2 }))',
      'a.mjs': 'export default () => ({ path: globalThis.urlOfNote() })',
    })
    assert.equal(app.url('note', { id: 7 }), '/notes/7')
    assert.throws(() => app.url('none'), /no route has that name/)
    assert.deepEqual((await request(`${url}/notes/1`)).json(), { path: '/notes/2' })
  })
})
