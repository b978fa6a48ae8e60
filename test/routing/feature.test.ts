import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

describe('ctx.url', () => {
  it('gives the path of a named route, in actions and in views', async (t) => {
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

  it('throws for a name that no route has, and for a parameter that is missing', async (t) => {
    const { url, lines } = await startApplication(t, {
      'routes/a.json': [
        { name: 'a', url: '/a', action: 'a.mjs' },
        { name: 'b', url: '/b/:id', action: 'a.mjs@missing' },
      ],
      'a.mjs': "export default ({ url }) => url('none'); export const missing = ({ url }) => url('b')",
    })
    assert.deepEqual([(await request(`${url}/a`)).status, (await request(`${url}/b/1`)).status], [500, 500])
    const said = lines().join('\n')
    assert.match(said, /GET \/a \(a\): Cannot make the path of route "none": no route has that name/)
    assert.match(said, /GET \/b\/1 \(b\): .*id/)
  })
})
