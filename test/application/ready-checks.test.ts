import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { ReadyChecks } from '../../lib/application/ready-checks.ts'
import type { Scope } from '../../lib/modules/registrations.ts'

function make(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const said: string[] = []
  const say = (message: string): void => void said.push(message)
  const checks = new ReadyChecks({ warn: say, info: say })
  const scope: Scope = { state: 'in use' }
  return { checks, said, scope }
}

describe('readiness checks', () => {
  it('fail by what they return or throw, by name', async (t) => {
    const { checks, said, scope } = make(t)
    assert.deepEqual(checks.run(), [])
    checks.add(scope, 'fine', () => true)
    checks.add(scope, 'later', async () => true)
    checks.add(scope, 'false', async () => false)
    checks.add(scope, 'nothing', () => {})
    checks.add(scope, 'throws', () => {
      throw new Error('no database')
    })
    const failed = await checks.run()
    assert.deepEqual(failed, [
      { name: 'false', reason: 'it returned false' },
      { name: 'throws', reason: 'no database' },
    ])
    assert.deepEqual(checks.failed(), failed)
    const lines = failed.map(({ name, reason }) => `not ready: the check ${name} fails: ${reason}`)
    assert.deepEqual(checks.warnings(), lines)
    await checks.run()
    assert.deepEqual(said, [lines.join('; ')])
    scope.state = 'ended'
    assert.deepEqual(checks.run(), [])
    assert.deepEqual([checks.warnings(), said.at(-1)], [[], 'all readiness checks pass'])
  })

  it('share a result while they run, and do not call a check again that hangs', async (t) => {
    const { checks, scope } = make(t)
    let now = 0
    t.mock.method(performance, 'now', () => now)
    let calls = 0
    let finish: (value: boolean) => void = () => {}
    checks.add(scope, 'slow', () => {
      calls += 1
      return new Promise((resolve) => (finish = resolve))
    })
    const first = checks.run()
    assert.equal(checks.run(), first)
    const late = [{ name: 'slow', reason: 'it took more than 2 s' }]
    now = 2000
    t.mock.timers.tick(2000)
    assert.deepEqual(await first, late)
    const second = checks.run()
    await setImmediate()
    assert.equal(calls, 1)
    t.mock.timers.tick(1)
    assert.deepEqual(await second, late, 'it has taken 2 s already')
    finish(true)
    await setImmediate()
    const third = checks.run()
    finish(true)
    assert.deepEqual([await third, calls], [[], 2])
  })

  it('are called again after 30 s when a call never ends, whatever that does later', async (t) => {
    const { checks, scope } = make(t)
    let now = 0
    t.mock.method(performance, 'now', () => now)
    const ends: ((value: boolean) => void)[] = []
    checks.add(scope, 'lost', () => new Promise((resolve) => void ends.push(resolve)))
    const runAt = async (ms: number): Promise<readonly [calls: number, reason: string | undefined]> => {
      now = ms
      const ran = checks.run()
      await setImmediate()
      t.mock.timers.tick(2000)
      return [ends.length, (await ran)[0]?.reason]
    }
    const slow = 'it took more than 2 s'
    assert.deepEqual(await runAt(0), [1, slow])
    assert.deepEqual(await runAt(30_000), [1, slow])
    assert.deepEqual(await runAt(30_001), [2, slow])
    ends[0]?.(true)
    assert.deepEqual(await runAt(40_000), [2, slow], 'the first call no longer counts')
    ends[1]?.(true)
    await setImmediate()
    const last = checks.run()
    ends[2]?.(true)
    assert.deepEqual([await last, ends.length], [[], 3])
  })

  it('are logged when the reason changes, at most once a second', async (t) => {
    const { checks, said, scope } = make(t)
    let now = 0
    t.mock.method(performance, 'now', () => now)
    let reason = ''
    checks.add(scope, 'database', () => {
      throw new Error(reason)
    })
    for (const [at, text] of [[0, 'refused'], [2000, 'refused'], [4000, 'no host'], [4500, 'late'], [6000, 'refused']] as const) {
      now = at
      reason = text
      await checks.run()
    }
    const line = 'not ready: the check database fails:'
    assert.deepEqual(said, [`${line} refused`, `${line} no host`, `${line} refused (and 1 more since the last such line)`])
  })

  it('are those of the module in use during a reload', async (t) => {
    const { checks, scope } = make(t)
    checks.add(scope, 'database', () => true)
    assert.throws(() => checks.add({ state: 'in use' }, 'database', () => false), /a readiness check "database": the name is taken/)
    scope.state = 'leaving'
    checks.add({ state: 'in use' }, 'database', () => false)
    assert.deepEqual(await checks.run(), [])
    scope.state = 'ended'
    assert.equal((await checks.run()).length, 1)
  })

  it('need a name and a function', (t) => {
    const { checks, scope } = make(t)
    for (const name of ['', 'a\nb', 'x'.repeat(101)]) assert.throws(() => checks.add(scope, name, () => true), /its name must have 1 to 100/)
    assert.throws(() => checks.add(scope, 'a', true as unknown as () => boolean), /"a": it is not a function/)
  })
})
