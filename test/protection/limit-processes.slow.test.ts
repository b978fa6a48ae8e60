// A limit that several processes share.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { ProcessClient, startSeveral } from '../cluster/several.ts'

it('passes exactly the tokens of one bucket, of 10,000 requests from 50 clients', async (t) => {
  const rule = { count: 320, per_s: 3600 }
  const { url, clients } = await startSeveral(t, 2, {
    'routes/limited.json': [{ name: 'limited', url: '/limited', action: 'pid.mjs', middleware: 'SVC_MwLimit:hour' }],
    'routes/middleware/config.json': { setup: { limit: { hour: rule } } },
  })
  const begun = performance.now()
  const statuses = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const client = new ProcessClient(url)
      t.after(() => client.close())
      const all: number[] = []
      for (let turn = 0; turn < 200; turn += 1) all.push((await client.ask('/limited')).status)
      return all
    }),
  )
  const due = ((performance.now() - begun) / 1000) * (rule.count / rule.per_s)
  const passed = statuses.flat().filter((status) => status === 200).length
  assert.equal(passed + statuses.flat().filter((status) => status === 429).length, 10_000)
  assert.ok(passed >= rule.count && passed <= rule.count + due + 1, `${passed} passed`)
  const refused = await Promise.all(
    [...(await clients()).values()].map((client) => client.json('/svc-status') as Promise<{ limits: object }>),
  )
  for (const { limits } of refused) assert.deepEqual(limits, { refused: { hour: 10_000 - passed } })
})
