import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request, type Answer } from '../support/request.ts'

const hourMs = 3_600_000
const action = `
export const count = ({ session }) => {
  session.set('count', (session.get('count') ?? 0) + 1)
  return { count: session.get('count') }
}
export const poll = ({ queue, longPoll }) => longPoll(queue('q'), { timeout_s: 1 })
export const push = ({ queue }) => {
  queue('q').push('event')
  return { ok: true }
}
export const form = ({ UCsrfToHtml, UResourceToHtml }) => UCsrfToHtml() + UResourceToHtml('42')
export const send = async ({ resourceId }) => ({ id: await resourceId() })
export const log = ({ log, query }) => {
  for (let count = 0; count < 12_000; count += 1) log(query.get('text') + ' ' + 'x'.repeat(60))
  return { ok: true }
}
`
const files = {
  'clock.mjs': action,
  'routes/clock.json': [
    { name: 'count', url: '/count', action: 'clock.mjs@count', middleware: 'SVC_MwSession' },
    { name: 'poll', url: '/poll', action: 'clock.mjs@poll' },
    { name: 'push', url: '/push', action: 'clock.mjs@push' },
    { name: 'form', url: '/form', action: 'clock.mjs@form' },
    { name: 'send', url: '/send', method: 'POST', action: 'clock.mjs@send', middleware: 'SVC_MwCsrfCheck' },
    { name: 'log', url: '/log', action: 'clock.mjs@log' },
  ],
  'routes/middleware/config.json': { setup: { session: { ttl_s: 60 }, csrf: { lapse: 60 } } },
}

/** The fields of a form's hidden inputs, as a browser sends them. */
function fieldsOf(page: string): string {
  const inputs = page.matchAll(/name="(\w+)" value="([^"]*)"/g)
  return new URLSearchParams([...inputs].map(([, name = '', value = '']): [string, string] => [name, value])).toString()
}

for (const [words, jumpMs] of [['back', -hourMs], ['ahead', hourMs]] as const) {
  test(`the clock jumps an hour ${words}: waits, sessions, forms and logs go on`, async (t) => {
    const clock = Date.now
    let offsetMs = 0
    t.mock.method(Date, 'now', () => clock() + offsetMs)
    const { url, lines } = await startApplication(t, files, { 'log.max_size_mb': 1, 'app.env': 'dev' })
    const first = await request(`${url}/count`)
    const cookie = first.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
    const count = async (): Promise<unknown> => (await request(`${url}/count`, { headers: { cookie } })).json()
    const send = (fields: string): Promise<Answer> =>
      request(`${url}/send`, { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: fields })
    const before = fieldsOf((await request(`${url}/form`)).text)
    assert.deepEqual((await send(before)).json(), { id: '42' })
    await request(`${url}/log?text=before`)

    const startedAt = performance.now()
    const empty = request(`${url}/poll`)
    await request(`${url}/svc-ping`)
    offsetMs = jumpMs
    assert.deepEqual((await empty).json(), { ok: true, event: null })
    const waitedMs = performance.now() - startedAt
    assert.ok(waitedMs > 900 && waitedMs < 30_000, `a poll of one second took ${waitedMs} ms`)
    const woken = request(`${url}/poll`)
    await request(`${url}/push`)
    assert.deepEqual((await woken).json(), { ok: true, event: 'event' })

    assert.deepEqual(await count(), { count: 2 }, 'a session of a minute in memory')
    const refused = await send(before)
    assert.deepEqual([refused.status, (refused.json() as { reason: string }).reason], [403, 'expired'])
    const after = fieldsOf((await request(`${url}/form`)).text)
    assert.deepEqual((await send(after)).json(), { id: '42' })

    await request(`${url}/log?text=between`)
    offsetMs = 0
    await request(`${url}/log?text=after`)
    assert.deepEqual((await send(before)).json(), { id: '42' })
    assert.deepEqual(await count(), { count: 3 })
    const status = (await request(`${url}/svc-status`)).json() as { log: { lost: number }; uptime_s: number }
    assert.equal(status.log.lost, 0)
    assert.ok(status.uptime_s < 60, `up for ${status.uptime_s} s`)
    const current = lines()
    assert.ok(current.some((line) => line.includes(' after xxx')))
  })
}
