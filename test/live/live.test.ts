import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

const files = {
  'routes/a.json': [{ name: 'news', url: '/news', method: 'GET', action: 'news.mjs' }],
  'news.mjs': `export default (ctx) => ctx.live(ctx.channel('news'))`,
}

describe('ctx.live', () => {
  it('responds with a stream when Accept names its type, else with the cursor poll', async (t) => {
    const { url, app } = await startApplication(t, files, { 'pool_rest.stream_timeout_s': 1 })
    const id = Number(await app.channel('news').publish('first'))
    const ask = (query: string, headers = {}) => request(`${url}/news${query}`, { headers })
    const poll = await ask(`?since=${id - 1}`, { accept: 'application/json' })
    assert.deepEqual(poll.json(), { events: [{ id, data: 'first' }], last_id: id })
    const stream = await ask(`?since=${id - 1}`, { accept: 'text/event-stream' })
    assert.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
    assert.match(stream.text, new RegExp(`^retry: 2000\\nid: ${id - 1}\\n\\nid: ${id}\\ndata: "first"\\n\\n`))
  })

  it('is no-store regardless of the action, and warns when the action would allow storing', async (t) => {
    const { url, lines } = await startApplication(t, {
      'routes/a.json': [{ name: 'news', url: '/news/:value', method: 'GET', action: 'news.mjs' }],
      'news.mjs': `export default (ctx) => {
        ctx.setHeader('Cache-Control', ctx.params.value.replace('+', ' '))
        return ctx.live(ctx.channel('news'))
      }`,
    }, { 'pool_rest.stream_timeout_s': 1 })
    for (const value of ['no-store,private', 'max-age=60']) {
      const poll = await request(`${url}/news/${value}?since=0`)
      assert.equal(poll.headers['cache-control'], 'no-store')
      const stream = await request(`${url}/news/${value}`, { headers: { accept: 'text/event-stream' } })
      assert.equal(stream.headers['cache-control'], 'no-store, no-transform')
    }
    const said = lines().filter((line) => line.includes('Cache-Control'))
    assert.match(said.join('\n'), /^.*\[WARN \] \[error\] GET \/news\/max-age=60 \(news\): Cache-Control "max-age=60" is replaced: responses that wait for events are no-store/)
    assert.doesNotMatch(said.join('\n'), /private/)
  })

  it('reports a gap in both, and prefers Last-Event-ID to since', async (t) => {
    const { url, app } = await startApplication(t, files, { 'pool_rest.stream_timeout_s': 1 })
    const id = Number(await app.channel('news').publish('first'))
    const accept = 'text/event-stream'
    const ahead = await request(`${url}/news?since=${id + 5}`)
    assert.equal((ahead.json() as { gap: boolean }).gap, true)
    const streams = [await request(`${url}/news?since=${id + 5}`, { headers: { accept } }), await request(`${url}/news?since=0`, { headers: { accept, 'last-event-id': String(id) } })]
    assert.match(streams[0]?.text ?? '', new RegExp(`\\nevent: gap\\ndata: {"last_id":${id}}\\n\\n`))
    assert.doesNotMatch(streams[1]?.text ?? '', /data/)
  })
})
