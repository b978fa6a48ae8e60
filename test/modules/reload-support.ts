// Reloads under load, for few of them and for many.
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

/** Reloads a table of 203 routes this many times under continuous requests. */
export async function checkReloads(t: TestContext, count: number): Promise<void> {
  const table = (version: number): object[] => [
    { name: 'always', url: '/always', action: 'a.mjs' },
    { name: 'other', url: `/only/${version % 2}`, action: 'a.mjs' },
    ...Array.from({ length: 200 }, (_, at) => ({ name: `fill${at}`, url: `/fill/${version}/${at}`, action: 'a.mjs' })),
    { name: 'last', url: '/last/:id', action: 'a.mjs' },
  ]
  const source = (version: number): string => `export default (ctx) => 'version ${version}'`
  const { app, url, write } = await startApplication(
    t,
    { 'routes/a.json': table(0), 'a.mjs': source(0) },
    { 'access_log.enabled': false, 'log.level': 'warn' },
  )
  let reloading = true
  let requests = 0
  const load = async (): Promise<void> => {
    while (reloading) {
      const [always, last, even, odd] = await Promise.all(
        ['/always', '/last/5', '/only/0', '/only/1'].map((path) => request(url + path)),
      )
      requests += 4
      assert.deepEqual([always?.status, last?.status], [200, 200])
      for (const answer of [even, odd]) assert.ok(answer?.status === 200 || answer?.status === 404)
    }
  }
  const loads = [load(), load()]
  for (let version = 1; version <= count; version++) {
    write({ 'routes/a.json': table(version), 'a.mjs': source(version) })
    await app.control.apply({ type: 'routes.reload' })
    assert.equal((await request(`${url}/always`)).text, `version ${version}`)
    assert.equal((await request(`${url}/only/${version % 2}`)).status, 200)
    assert.equal((await request(`${url}/only/${(version + 1) % 2}`)).status, 404)
  }
  reloading = false
  await Promise.all(loads)
  assert.ok(requests > 2 * count, `${requests} requests`)
}
