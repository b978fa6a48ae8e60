import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { applicationFolder } from '../support/application-folder.ts'
import { startClient } from '../support/keep-alive-client.ts'
import { serviceManager } from '../support/service-manager.ts'
import { until } from '../support/until.ts'

const restarts = 20
const wanted = 100_000

/** Runs wrk (Debian's package `wrk`) until it is told to end; resolves with its report. */
function startWrk(url: string): { stop(): Promise<string> } {
  const child = spawn('wrk', ['--threads', '1', '--connections', '32', '--duration', '100s', '--timeout', '20s', url])
  const report = text(child.stdout)
  const ended = once(child, 'close').catch((error: Error) => {
    assert.fail(`Cannot run wrk: ${error.message}. Install it: apt-get install --no-install-recommends wrk`)
  })
  return {
    stop: async () => {
      child.kill('SIGINT')
      await ended
      return report
    },
  }
}

test(`${restarts} restarts fail none of ${wanted} requests of wrk and of a client that keeps its connections`, async (t) => {
  const service = await serviceManager(t, {
    cwd: applicationFolder({ 'home.mjs': 'export default () => String(process.pid)' }),
  })
  let pid = await service.start()
  const url = `http://127.0.0.1:${service.port}/`
  const client = startClient({ url, connections: 20 })
  const wrk = startWrk(url)
  const served = (): number => client.tally.bodies.get(String(pid)) ?? 0
  for (let count = 0; count < restarts; count += 1) {
    await until(() => served() >= 2500)
    pid = await service.restart()
  }
  await until(() => served() >= 2500)
  const { answered, failed, slowestMs } = await client.stop()
  const report = await wrk.stop()
  const ofWrk = Number(/^ *(\d+) requests in /m.exec(report)?.[1])
  t.diagnostic(`the client had ${answered} answers, the slowest after ${slowestMs.toFixed()} ms, wrk ${ofWrk}`)
  assert.deepEqual(failed, [])
  assert.doesNotMatch(report, /Socket errors|Non-2xx/)
  assert.ok(answered + ofWrk >= wanted, report)
})
