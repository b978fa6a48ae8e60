// What earlier versions wrote into the engine, with today's servers.
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Redis } from '../../lib/redis/client.ts'
import { startApplication, type TestApplication } from '../support/application.ts'
import { isReady, tableOf } from '../support/node-panel.ts'
import { openRedis, startRedis } from '../support/redis-server.ts'
import { request } from '../support/request.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { putFiles, readWritten, upgradedFiles, user, versions, type EngineKey } from '../upgrade/written.ts'

async function put(redis: Redis, key: string, { type, content }: EngineKey): Promise<void> {
  if (type === 'hash') await redis.command('HSET', key, ...Object.entries(content).flat())
  else if (type === 'list') await redis.command('RPUSH', key, ...content)
  else if (type === 'string') await redis.command('SET', key, content)
  else for (const [id, fields] of content) await redis.command('XADD', key, id, ...fields)
  await redis.command('PEXPIRE', key, key.includes(':nodes:') ? 2 ** 40 : 3_600_000)
}

/** An engine as a version left it, and three nodes; the first has the version's `admin.json`. */
async function startUpgraded(t: TestContext, version: string) {
  const server = await startRedis(t)
  const { keys, app_key, session: cookie } = readWritten(version)
  const redis = openRedis(t, server.url)
  for (const [key, value] of Object.entries(keys)) await put(redis, key, value)
  const folder = temporaryFolder()
  putFiles(version, folder)
  const nodes: TestApplication[] = []
  const config = { 'shared.url': server.url, 'app.env': 'dev', app_key }
  while (nodes.length < 3) nodes.push(await startApplication(t, upgradedFiles, config, nodes.length === 0 ? { folder } : {}))
  return { server, nodes: nodes as [TestApplication, TestApplication, TestApplication], cookie }
}

async function assertData({ url }: TestApplication, cookie: string): Promise<void> {
  assert.deepEqual((await request(`${url}/user`, { headers: { cookie } })).json(), user)
  const { events } = (await request(`${url}/news?since=0`)).json() as { events: { data: unknown }[] }
  assert.deepEqual(events.map(({ data }) => data), [{ text: 'Grüße' }])
}

describe('the engine of an earlier version', () => {
  it('with an unsigned state keeps nodes from being ready, until their advice is followed', async (t) => {
    const { server, nodes, cookie } = await startUpgraded(t, '2026-11-22')
    for (const node of nodes) {
      assert.equal(await isReady(node), false)
      const [warning = ''] = node.app.warnings()
      assert.match(warning, /svc:nodes:state in the shared engine was written by an older version of svc, which did not sign it, so it is not used/)
      assert.match(warning, /; stop all nodes; these fields are lost and must be set again \(admin, route:"added", route:"kept", trace:pool\): remove it with DEL svc:nodes:state$/)
      await assertData(node, cookie)
    }
    for (const { app } of nodes) await app.stop()
    await server.ask('DEL', 'svc:nodes:state')
    const config = { 'shared.url': server.url, 'app.env': 'dev', app_key: readWritten('2026-11-22').app_key }
    const one = await startApplication(t, {}, config, { folder: nodes[0].folder })
    await until(() => isReady(one))
    assert.deepEqual((await tableOf(one)).filter((line) => /kept|added/.test(line)), ['kept /kept'])
    await assertData(one, cookie)
    assert.deepEqual((await request(`${one.url}/job`)).json(), { ok: true, event: { job: 1 } })
  })

  for (const version of versions.slice(1)) {
    it(`with a signed state is used (${version})`, async (t) => {
      const { nodes, cookie } = await startUpgraded(t, version)
      for (const node of nodes) {
        await until(() => isReady(node))
        assert.deepEqual((await tableOf(node)).filter((line) => /kept|added/.test(line)).sort(), ['added /added', 'kept /kept'])
        assert.equal(((await request(`${node.url}/svc-trace`)).json() as { pool: boolean }).pool, false)
        await assertData(node, cookie)
      }
      assert.deepEqual((await request(`${nodes[1].url}/job`)).json(), { ok: true, event: { job: 1 } })
      const problems = nodes.flatMap((node) => node.lines()).filter((line) => /\[(ERROR|FATAL)\]/.test(line))
      assert.deepEqual(problems, [])
    })
  }
})
