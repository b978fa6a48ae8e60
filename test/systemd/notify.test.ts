import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createNotifier } from '../../lib/systemd/service.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { until } from '../support/until.ts'
import { fakeNotify } from './fake-notify.ts'

const socket = '/run/nowhere/notify'

function notifier(env: Record<string, string>) {
  const warnings: string[] = []
  const made = createNotifier(env, 7, (message) => warnings.push(message))
  return { made: made as NonNullable<typeof made>, warnings } // Every test but one gives it a socket.
}

describe('the messages to the service manager', () => {
  it('are sent in order, for the main process', async () => {
    const { path, calls, environment } = fakeNotify()
    const env: Record<string, string> = { NOTIFY_SOCKET: socket, PATH: path, SVC_APP_KEY: 'secret', WATCHDOG_PID: '8', WATCHDOG_USEC: '1000' }
    const { made, warnings } = notifier(env)
    const before = process.hrtime.bigint() / 1000n
    made.reloading() // Not sent before the server serves: the end of the reload would report it as ready.
    made.reloaded('reloaded')
    made.ready('listening on http://127.0.0.1:80')
    made.reloading()
    made.reloaded('reloaded')
    made.stopping()
    made.reloading()
    made.reloaded('reloaded')
    await made.sent()
    const [ready, reloading, ...rest] = calls()
    assert.deepEqual(ready, ['--pid=7', 'READY=1', 'STATUS=listening on http://127.0.0.1:80'])
    assert.deepEqual([reloading?.[1], reloading?.[3]], ['RELOADING=1', 'STATUS=reloading'])
    const usec = BigInt(/^MONOTONIC_USEC=(\d+)$/.exec(reloading?.[2] ?? '')?.[1] ?? 0)
    assert.ok(usec >= before && usec <= process.hrtime.bigint() / 1000n)
    assert.deepEqual(rest, [['--pid=7', 'READY=1', 'STATUS=reloaded'], ['--pid=7', 'STOPPING=1', 'STATUS=stopping']])
    assert.deepEqual(warnings, [])
    assert.match(environment(), /^NOTIFY_SOCKET=\/run\/nowhere\/notify$/m)
    assert.doesNotMatch(environment(), /secret/)
    assert.deepEqual(Object.keys(env).sort(), ['PATH', 'SVC_APP_KEY'])
  })

  it('start no program without a service manager', async () => {
    for (const given of [{}, { NOTIFY_SOCKET: '' }]) {
      const { path, calls } = fakeNotify()
      assert.equal(notifier({ PATH: path, ...given }).made, undefined)
      assert.deepEqual(calls(), [])
    }
  })

  it('cause a warning if they cannot be sent: no program, a failure, a timeout', async () => {
    const rows: [path: string, warning: RegExp][] = [
      ['/nowhere', /^the service manager was not notified of READY=1: spawn systemd-notify ENOENT$/],
      [fakeNotify('echo "No such socket" >&2; exit 1').path, /not notified of READY=1: No such socket$/],
      [fakeNotify('kill -TERM $$').path, /not notified of READY=1: Command failed/],
    ]
    for (const [path, warning] of rows) {
      const { made, warnings } = notifier({ PATH: path, NOTIFY_SOCKET: socket })
      made.ready('')
      await made.sent()
      assert.equal(warnings.length, 1)
      assert.match(warnings[0] ?? '', warning)
    }
  })

  it('feed the watchdog twice per timeout, once the server is ready', async () => {
    const { path, calls } = fakeNotify()
    const { made } = notifier({ PATH: path, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '200000', WATCHDOG_PID: '7' })
    const before = performance.now()
    made.ready('')
    await until(() => calls().filter(([, text]) => text === 'WATCHDOG=1').length >= 2)
    assert.ok(performance.now() - before >= 190)
    assert.equal(calls()[0]?.[1], 'READY=1')
  })

  it('feed the watchdog one at a time, however long the program takes', async () => {
    const go = join(temporaryFolder(), 'go')
    const { path, calls } = fakeNotify(`case "$*" in *WATCHDOG*) until [ -e ${go} ]; do sleep 0.02; done ;; esac`)
    const { made, warnings } = notifier({ PATH: path, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '20000' })
    const texts = (): unknown[] => calls().map(([, text]) => text)
    made.ready('')
    await until(() => texts().includes('WATCHDOG=1'))
    for (let times = 0; times < 10; times += 1) await delay(10) // As often the watchdog would have been fed.
    made.stopping()
    const told = made.sent()
    assert.deepEqual(texts(), ['READY=1', 'WATCHDOG=1'])
    writeFileSync(go, '')
    await told
    assert.deepEqual(texts().slice(0, 3), ['READY=1', 'WATCHDOG=1', 'STOPPING=1'])
    await until(() => texts().slice(3).includes('WATCHDOG=1')) // It is fed again.
    assert.deepEqual(warnings, [])
  })

  it('feed no watchdog without a valid timeout', async () => {
    for (const usec of ['0', '-1', 'x', '']) {
      const { path, calls } = fakeNotify()
      const { made } = notifier({ PATH: path, NOTIFY_SOCKET: socket, WATCHDOG_USEC: usec })
      made.ready('')
      await made.sent()
      assert.equal(calls().length, 1)
    }
  })
})
