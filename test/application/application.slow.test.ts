import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { makeApplication } from './application-support.ts'

describe('10,000 routes', () => {
  it('load in a time linear in their number', async (t) => {
    const records = Array.from({ length: 10_000 }, (_, at) => ({
      name: `area${at % 100}.route${at}`,
      url: `/area${at % 100}/route${at}/:id`,
      method: 'GET',
      action: `actions/${at % 50}.mjs@run`,
    }))
    const files: Record<string, unknown> = {}
    for (let at = 0; at < 50; at++) files[`actions/${at}.mjs`] = 'export const run = () => "x"'
    for (let at = 0; at < 10; at++) files[`routes/${at}.json`] = records.slice(at * 1000, at * 1000 + 1000)
    const { application, names } = makeApplication(t, files)
    const before = performance.now()
    await application.start()
    const took = performance.now() - before
    assert.equal(names().length, 10_000)
    t.diagnostic(`10,000 routes ready in ${took.toFixed(0)} ms`)
    // About 200 ms on an idle machine. Test machines are shared, so the limit only detects quadratic growth: a minute.
    assert.ok(took < 10_000, `${took} ms`)
  })
})
