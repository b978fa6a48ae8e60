// The second factor on servers that share an engine: each code and recovery code once over all of them.
import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'
import { makeTotpSecret } from '../../lib/access/totp.ts'
import { codeNow } from '../access/second-factor-support.ts'
import { form } from '../access/support.ts'
import { password, startPanel, user, type PanelServer } from '../panel/panel-server.ts'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const none = { 'admin.user': '', 'admin.password': '', 'admin.secret': '' }

/** A node that is ready. */
async function start(t: TestContext, url: string, config: Readonly<Record<string, unknown>>): Promise<PanelServer> {
  const server = await startPanel(t, { 'shared.url': url, ...config })
  await isReady(server)
  return server
}

function isReady(server: PanelServer): Promise<void> {
  return until(async () => (await server.ask('/svc-ready')).status === 200)
}

async function statusOf(server: PanelServer, code: string): Promise<number> {
  return (await server.ask('/svc-login', form({ user, password, code }))).status
}

describe('the second factor on several nodes', () => {
  for (const [which, other] of [['the same credentials', {}], ['the shared credentials', none]] as const) {
    it(`accepts each code once, with ${which} on the other node`, async (t) => {
      const { url } = await startRedis(t)
      const { codes, hashes } = makeRecoveryCodes()
      const secret = makeTotpSecret()
      const factor = { 'admin.secret': 'random secret', 'admin.totp': secret, 'admin.recovery_codes': hashes }
      const one = await start(t, url, factor)
      const two = await start(t, url, other === none ? none : factor)
      await until(async () => (await two.ask('/svc-login', form({ user, password }))).text.includes('name="ticket"'))
      const code = codeNow(secret)
      const [recovery = '', second = ''] = codes
      assert.equal(await statusOf(one, code), 302)
      assert.equal(await statusOf(two, code), 401)
      assert.equal(await statusOf(two, recovery), 302)
      for (const node of [one, two]) assert.equal(await statusOf(node, recovery), 401)
      const answers = await Promise.all([one, two, one, two].map((node) => statusOf(node, second)))
      assert.deepEqual(answers.sort(), [302, 401, 401, 401])
      assert.ok(two.lines().some((line) => line.endsWith('recovery code, 9 left')), two.lines().join('\n'))

      for (const node of [one, two]) {
        rmSync(join(node.folder, '.cached'), { recursive: true, force: true })
        await node.restart()
        await isReady(node)
        for (const used of [code, recovery, second]) assert.equal(await statusOf(node, used), 401)
      }
    })
  }

  it('keeps what was used when the engine loses it, and admits nobody while it is away', async (t) => {
    const redis = await startRedis(t)
    const { codes, hashes } = makeRecoveryCodes()
    const secret = makeTotpSecret()
    const factor = { 'admin.secret': 'random secret', 'admin.totp': secret, 'admin.recovery_codes': hashes }
    const one = await start(t, redis.url, factor)
    const two = await start(t, redis.url, factor)
    const code = codeNow(secret)
    const [recovery = '', later = ''] = codes
    assert.deepEqual([await statusOf(one, code), await statusOf(one, recovery)], [302, 302])
    await until(() => existsSync(join(two.folder, '.cached', 'totp-used')) && two.read('.cached/totp-used').includes('sha256'))
    await redis.ask('FLUSHALL')
    for (const node of [one, two]) {
      await node.restart()
      await isReady(node)
      for (const used of [code, recovery]) assert.equal(await statusOf(node, used), 401)
    }
    await redis.kill()
    await until(async () => (await statusOf(one, later)) === 503)
    assert.equal((await one.ask('/svc-login', form({ user, password: 'wrong', code: later }))).status, 401)
  })
})
