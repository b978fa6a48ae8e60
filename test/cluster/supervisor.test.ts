import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { Peer } from '../../lib/cluster/peer.ts'
import { createSupervisor } from '../../lib/cluster/supervisor.ts'
import type { Ending, WorkerProcess } from '../../lib/cluster/worker-process.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { memoryPorts } from './memory-ports.ts'

interface FakeWorker extends WorkerProcess {
  readonly number: number
  /** The notifications and signals it received. */
  readonly heard: string[]
  end(ending: Partial<Ending>): Promise<void>
}

/** Workers that a test ends, with a clock that a test advances. */
function makeSupervisor(t: TestContext, count: number, endsWithLast = false) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const lines: string[] = []
  const started: FakeWorker[] = []
  const seen = { ready: 0, givenUp: 0 }
  let now = 0
  const say = (level: string) => (message: string) => void lines.push(`${level} ${message}`)
  const supervisor = createSupervisor({
    count,
    log: Object.assign(() => {}, silentLogger, {
      info: say('INFO'),
      warn: say('WARN'),
      error: say('ERROR'),
      fatal: say('FATAL'),
    }),
    endsWithLast,
    stopTimeoutMs: 1000,
    now: () => now,
    onReady: () => (seen.ready += 1),
    onGivenUp: () => (seen.givenUp += 1),
    start: (number) => {
      const [here, there] = memoryPorts()
      const heard: string[] = []
      new Peer(there).on('process.stop', (drains) => heard.push(drains === true ? 'stop' : 'stop at once'))
      let resolveEnded: (ending: Ending) => void
      const ended = new Promise<Ending>((resolve) => (resolveEnded = resolve))
      const worker: FakeWorker = {
        number,
        serving: false,
        pid: started.length,
        heard,
        peer: new Peer(here),
        ended,
        kill: (signal) => heard.push(signal),
        end: async ({ status = null, signal = null, ...error }) => {
          resolveEnded({ status, signal, ...error })
          await settled()
        },
      }
      started.push(worker)
      return worker
    },
  })
  return {
    supervisor,
    lines,
    started,
    seen,
    last: () => started.at(-1) as FakeWorker,
    /** Advances the clock and timers. */
    pass: async (ms: number) => {
      now += ms
      t.mock.timers.tick(ms)
      await settled()
    },
    serveAll: () => {
      for (let number = 1; number <= count; number += 1) supervisor.serves(number)
    },
  }
}

/** Resolves when pending reactions have run. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

describe('the supervisor', () => {
  it('starts the requested number of workers, and is ready when all serve', (t) => {
    const { supervisor, started, seen } = makeSupervisor(t, 3)
    assert.deepEqual(started.map(({ number }) => number), [1, 2, 3])
    supervisor.serves(2)
    supervisor.serves(1)
    assert.equal(seen.ready, 0)
    supervisor.serves(3)
    supervisor.serves(3)
    assert.equal(seen.ready, 1)
  })

  it('replaces a worker that ended at once, with the same number', async (t) => {
    const { supervisor, started, lines, serveAll } = makeSupervisor(t, 2)
    serveAll()
    await started[1]?.end({ signal: 'SIGKILL' })
    assert.equal(supervisor.slots[1]?.serving, false)
    assert.deepEqual(started.map(({ number }) => number), [1, 2, 2])
    assert.deepEqual(lines, ['ERROR process 2 ended: by SIGKILL; restarting'])
  })

  it('counts the replaced workers by reason', async (t) => {
    const { supervisor, serveAll, pass, last } = makeSupervisor(t, 1)
    serveAll()
    const rows: [before: () => void, ending: Partial<Ending>][] = [
      [() => supervisor.hangs(1), { signal: 'SIGKILL' }],
      [() => {}, { signal: 'SIGKILL' }],
      [() => {}, { signal: 'SIGABRT' }],
      [() => {}, { status: 7 }],
      [() => supervisor.fails(1, 'a file is wrong'), { status: 1 }],
      [() => {}, { error: new Error('no memory') }],
      [() => supervisor.replace(1), { status: 0 }],
    ]
    for (const [before, ending] of rows) {
      serveAll()
      await pass(20_000)
      before()
      await last().end(ending)
    }
    assert.deepEqual(supervisor.replaced, { hang: 1, abort: 1, signal: 1, exit: 1, start: 2, planned: 1 })
  })

  it('doubles the delay each time a worker ends soon after its start', async (t) => {
    const { started, lines, serveAll, pass, last } = makeSupervisor(t, 2)
    serveAll()
    await pass(20_000) // The other is a healthy one from now on.
    const waits = [0, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]
    for (const [at, wait] of waits.entries()) {
      await (at === 0 ? started[1] : last())?.end({ status: 1 })
      const before = started.length
      if (wait > 0) {
        assert.match(lines.at(-1) ?? '', new RegExp(` in ${wait} ms$`))
        await pass(wait - 1)
        assert.equal(started.length, before, `not before ${wait} ms`)
      }
      await pass(1)
      assert.equal(last().number, 2)
    }
    assert.equal(started.length, 2 + waits.length)
  })

  it('resets the delay after a worker has served for long', async (t) => {
    const { started, lines, serveAll, pass, last } = makeSupervisor(t, 1)
    serveAll()
    await started[0]?.end({ status: 1 })
    await pass(10_000)
    await last().end({ status: 1 })
    assert.deepEqual(lines, Array(2).fill('ERROR process 1 ended: with status 1; restarting'))
  })

  it('gives up with the reason when all workers keep ending', async (t) => {
    const { supervisor, started, lines, seen, serveAll, pass, last } = makeSupervisor(t, 1)
    serveAll()
    await started[0]?.end({ status: 1 })
    for (let round = 0; round < 4; round += 1) {
      await pass(1000)
      await last().end({ status: 1 })
    }
    assert.equal(await supervisor.done, 1)
    assert.equal(seen.givenUp, 1)
    const why = 'process 1 ended: with status 1; it did so 5 times in a row within 10 s of its start'
    assert.equal(lines.at(-1), `FATAL ${why}: stopping the server`)
  })

  it('keeps the server alive while one worker serves, even when the others cannot restart', async (t) => {
    const { started, seen, serveAll, pass } = makeSupervisor(t, 3)
    serveAll()
    for (let round = 0; round < 6; round += 1) {
      for (const number of [2, 3]) await started.findLast((worker) => worker.number === number)?.end({ status: 1 })
      await pass(1600) // The longest delay of these rounds; 9.6 s in all.
    }
    assert.equal(seen.givenUp, 0)
    assert.equal(started.filter(({ number }) => number === 1).length, 1)
  })

  it('gives up when all of several workers keep ending soon after they serve', async (t) => {
    const { supervisor, started, seen, serveAll, pass } = makeSupervisor(t, 2)
    serveAll()
    for (let round = 0; round < 5; round += 1) {
      for (const number of [1, 2]) await started.findLast((worker) => worker.number === number)?.end({ status: 1 })
      await pass(800)
      if (seen.givenUp > 0) break
      serveAll()
    }
    assert.equal(seen.givenUp, 1)
    for (const worker of started) await worker.end({ status: 0 })
    assert.equal(await supervisor.done, 1)
  })

  it('ends with the status of a worker that fails the first start, and stops the others gracefully', async (t) => {
    const { supervisor, started, lines, seen } = makeSupervisor(t, 2)
    supervisor.serves(1)
    await started[1]?.end({ status: 78 })
    assert.deepEqual(started[0]?.heard, ['stop at once'])
    await started[0]?.end({ status: 0 })
    assert.equal(await supervisor.done, 78)
    assert.deepEqual([started.length, seen.ready, seen.givenUp], [2, 0, 1])
    assert.deepEqual(lines, ['FATAL process 2 ended before all served: with status 78: stopping the server'])
  })

  it('explains SIGABRT at the first start', async (t) => {
    const { supervisor, started, lines } = makeSupervisor(t, 1)
    await started[0]?.end({ signal: 'SIGABRT' })
    assert.equal(await supervisor.done, 1)
    assert.match(lines.join(), /^FATAL process 1 ended before all served: by SIGABRT \(too few threads allowed\? see TasksMax=/)
  })

  it('ends with a nonzero status when a worker exits with 0 at the first start', async (t) => {
    const { supervisor, started } = makeSupervisor(t, 1)
    await started[0]?.end({ status: 0 })
    assert.equal(await supervisor.done, 1)
  })

  it('replaces a worker that was stopped before all served', async (t) => {
    const { supervisor, started, seen, serveAll } = makeSupervisor(t, 2)
    supervisor.ends(1)
    await started[0]?.end({ status: 0 })
    assert.deepEqual([started.map(({ number }) => number), seen.givenUp], [[1, 2, 1], 0])
    serveAll()
    assert.equal(seen.ready, 1)
  })

  it('retries later when a process cannot be started, and logs the reason', async (t) => {
    const { started, lines, serveAll, pass, last } = makeSupervisor(t, 2)
    serveAll()
    await pass(20_000)
    await started[1]?.end({ signal: 'SIGKILL' })
    await last().end({ error: new Error('spawn node EAGAIN') })
    assert.equal(lines.at(-1), 'ERROR process 2 ended: it could not be started: spawn node EAGAIN; restarting in 100 ms')
    await pass(100)
    assert.equal(started.length, 4)
  })

  it('stops all workers, replaces none, and is done when the last has ended', async (t) => {
    const { supervisor, started, lines, serveAll } = makeSupervisor(t, 2)
    serveAll()
    const stopped = supervisor.stop()
    await settled()
    assert.deepEqual(started.map(({ heard }) => heard), [['stop'], ['stop']])
    await started[0]?.end({ status: 0 })
    await started[1]?.end({ status: 0 })
    assert.equal(await stopped, 0)
    assert.deepEqual([started.length, lines], [2, []])
  })

  it('kills a worker that does not stop in time', async (t) => {
    const { supervisor, started, lines, serveAll, pass } = makeSupervisor(t, 1)
    serveAll()
    void supervisor.stop()
    await pass(2999)
    assert.deepEqual(started[0]?.heard, ['stop'])
    await pass(1)
    assert.deepEqual(started[0]?.heard, ['stop', 'SIGKILL'])
    assert.deepEqual(lines, ['WARN process 1 did not stop in time: killing it'])
  })

  it('replaces a diverged worker after a graceful stop', async (t) => {
    const { supervisor, started, lines, serveAll, pass } = makeSupervisor(t, 2)
    serveAll()
    supervisor.replace(1)
    supervisor.replace(1)
    await settled()
    assert.deepEqual(started[0]?.heard, ['stop at once'])
    await started[0]?.end({ status: 0 })
    assert.deepEqual(started.map(({ number }) => number), [1, 2, 1])
    await pass(60_000)
    assert.deepEqual(lines, ['INFO process 1 has stopped: restarting'])
  })

  it('replaces a worker that was stopped from outside without counting a failure', async (t) => {
    const { supervisor, started, lines, serveAll } = makeSupervisor(t, 1)
    serveAll()
    for (let round = 0; round < 7; round += 1) {
      supervisor.ends(1)
      await started.at(-1)?.end({ status: 0 })
    }
    assert.equal(started.length, 8)
    assert.ok(lines.every((line) => line.startsWith('INFO')))
  })

  it('ends with the last serving worker when the passed socket closes with it', async (t) => {
    const { supervisor, started, lines, seen, serveAll } = makeSupervisor(t, 2, true)
    serveAll()
    await started[0]?.end({ signal: 'SIGKILL' })
    assert.equal(seen.givenUp, 0)
    await started[1]?.end({ signal: 'SIGKILL' })
    assert.deepEqual([seen.givenUp, started.length], [1, 3])
    await started[2]?.end({ status: 0 })
    assert.equal(await supervisor.done, 1)
    const why = 'no process is left that has the socket of the service manager, which has to restart the server'
    assert.equal(lines.at(-1), `FATAL ${why}: stopping the server`)
  })

  it('warns about a worker that does not serve, with the reason, until its successor serves', async (t) => {
    const { supervisor, lines, serveAll, pass, last, started } = makeSupervisor(t, 2)
    serveAll()
    await pass(20_000)
    assert.deepEqual(supervisor.warnings(), [])
    await started[1]?.end({ signal: 'SIGKILL' })
    assert.deepEqual(supervisor.warnings(), ['process 2 does not serve: it ended by SIGKILL. Retrying'])
    supervisor.serves(2)
    assert.deepEqual(supervisor.warnings(), [])
    supervisor.fails(2, 'it cannot load a.mjs')
    await last().end({ status: 1 })
    assert.match(lines.at(-1) ?? '', /^ERROR process 2 ended: it cannot load a\.mjs; restarting in 100 ms$/)
    const warning = 'process 2 does not serve: it cannot load a.mjs, 2 times in a row soon after its start. Retrying'
    assert.deepEqual(supervisor.warnings(), [warning])
    await pass(100)
    assert.deepEqual(supervisor.warnings(), [warning])
    supervisor.serves(2)
    assert.deepEqual(supervisor.warnings(), [])
  })

  it('starts no worker when stopped during a delay', async (t) => {
    const { supervisor, started, serveAll, pass, last } = makeSupervisor(t, 1)
    serveAll()
    await started[0]?.end({ status: 1 })
    await last().end({ status: 1 })
    assert.equal(await supervisor.stop(), 0)
    await pass(60_000)
    assert.equal(started.length, 2)
  })
})
