import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { RoutesUnsavedError, type MachineCommandType } from '../../lib/control/commands.ts'
import { initialState, nextState, withRoute, withSwitch, type DesiredState } from '../../lib/control/desired-state.ts'
import { LocalStateStore, type StateStore } from '../../lib/control/state-store.ts'
import { UsedCodesFile } from '../../lib/control/used-codes-file.ts'
import { TraceSwitches } from '../../lib/control/trace-switches.ts'
import { hostNodes, listenForNodes } from '../../lib/cluster/nodes.ts'
import { Peer } from '../../lib/cluster/peer.ts'
import { serve } from '../../lib/cluster/remote.ts'
import { createStateHost, createWorkerState, type StateServedByWorker } from '../../lib/cluster/state-channel.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { Trace } from '../../lib/log/trace.ts'
import { awayError } from '../../lib/http/errors.ts'
import { listedNode } from '../support/node-panel.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { memoryPorts } from './memory-ports.ts'

const withA = (state: DesiredState): DesiredState => nextState(state, withRoute(state, 'a', { name: 'a' }, false))
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

interface MadeHostOptions {
  readonly patienceMs?: number
  readonly store?: Partial<StateStore>
}

function makeHost({ patienceMs, store: over }: MadeHostOptions = {}) {
  const lines: string[] = []
  const asked: string[] = []
  const seen: string[] = []
  const diverged: number[] = []
  const trace = new Trace()
  const folder = temporaryFolder()
  const local = new LocalStateStore(folder, new UsedCodesFile(folder, () => {}))
  const store: StateStore = {
    isShared: false,
    nowMs: () => 5000,
    read: () => local.read(),
    write: (next, file) => local.write(next, file),
    missing: () => [],
    ...over,
  }
  const host = createStateHost({
    store,
    log: Object.assign(() => {}, silentLogger, { error: (message: string) => lines.push(message) }),
    trace: new TraceSwitches({ trace, nowMs: () => 5000, onReturn: () => {} }),
    onCommand: async ({ type }) => void seen.push(type),
    applyToServer: ({ type }) => asked.push(type),
    onDiverged: ({ number }) => diverged.push(number),
    ...(patienceMs !== undefined && { patienceMs }),
  })

  /** A worker that applies states, and its view of the state. */
  function join(number: number, apply: (state: DesiredState) => unknown = () => {}, serving = true) {
    const [here, there] = memoryPorts()
    const member = { number, peer: new Peer(here), serving }
    const peer = new Peer(there)
    const applied: number[] = []
    const commands: string[] = []
    const state = createWorkerState(peer, false)
    serve<StateServedByWorker>(peer, 'state', {
      apply: async (told) => {
        const taken = state.timed(told)
        await apply(taken)
        applied.push(taken.version)
      },
      carryOut: async ({ type }) => void commands.push(type),
    })
    host.join(member)
    return { state, applied, commands, member, close: () => there.close() }
  }
  return { host, join, local, trace, lines, asked, seen, diverged }
}

describe('the state of several processes', () => {
  it('is sent to all workers but the writer, which is answered when all have applied it', async () => {
    const { join, local } = makeHost()
    let free: () => void = () => {}
    const held = new Promise<void>((resolve) => (free = resolve))
    const [one, two, three] = [join(1), join(2), join(3, () => held)]
    const next = withA(await one.state.read())
    assert.equal(await one.state.write(next), true)
    let answered = false
    const missing = Promise.resolve(one.state.missing(next, 60_000)).then((lines) => {
      answered = true
      return lines
    })
    while (two.applied.length === 0) await nextTurn()
    assert.equal(answered, false)
    free()
    assert.deepEqual(await missing, [])
    assert.deepEqual([one.applied, two.applied, three.applied, local.read()], [[], [1], [1], next])
  })

  it('accepts one of two concurrent writes', async () => {
    const { join, local } = makeHost()
    const [one, two] = [join(1), join(2)]
    const [first, second] = [withA(await one.state.read()), withA(await two.state.read())]
    assert.deepEqual(await Promise.all([one.state.write(first), two.state.write(second)]), [true, false])
    assert.equal(local.read().stamp, first.stamp)
    assert.deepEqual([one.applied, two.applied], [[], [1]])
  })

  it('carries the time of the primary', async () => {
    const { state } = makeHost().join(1)
    await state.read()
    const now = state.nowMs()
    assert.ok(now >= 5000 && now < 6000, String(now))
  })

  it('also sets the trace switches of the primary', async () => {
    const { join, trace } = makeHost()
    const { state } = join(1)
    const before = await state.read()
    await state.write(nextState(before, withSwitch(before, { module: 'pool', on: false }, 5000)))
    assert.equal(trace.switchOf('pool').on, false)
  })

  it('reports and replaces a worker that cannot apply it', async () => {
    const made = makeHost()
    const [one, , three] = [
      made.join(1),
      made.join(2, () => {
        throw new Error('the module does not load')
      }),
      made.join(3),
    ]
    const next = withA(initialState)
    await one.state.write(next)
    assert.deepEqual(await one.state.missing(next, 5000), ['process 2: the module does not load'])
    assert.deepEqual([three.applied, made.diverged], [[1], [2]])
    assert.deepEqual(made.lines, ['change 1 was not applied by process 2: the module does not load'])
  })

  it('reports a worker that does not answer in time, and replaces it when it takes too long', async () => {
    const made = makeHost({ patienceMs: 1000 })
    const one = made.join(1)
    made.join(2, () => new Promise(() => {}))
    const next = withA(initialState)
    await one.state.write(next)
    assert.deepEqual(await one.state.missing(next, 10), ['process 2: it did not answer within 0.01 s'])
    assert.deepEqual(made.diverged, [])
    assert.deepEqual(await one.state.missing(next, 5000), ['process 2: it did not answer within 1 s'])
    assert.deepEqual(made.diverged, [2])
  })

  it('waits for a worker that is making a change, and does not replace it', async () => {
    const made = makeHost({ patienceMs: 10 })
    let free: () => void = () => {}
    const held = new Promise<void>((resolve) => (free = resolve))
    const [one, two] = [made.join(1), made.join(2, () => held)]
    await two.state.read()
    const next = withA(await one.state.read())
    await one.state.write(next)
    assert.deepEqual(await one.state.missing(next, 30), ['process 2: it did not answer within 0.03 s'])
    free()
    assert.deepEqual(await one.state.missing(next, 5000), [])
    assert.deepEqual([two.applied, made.diverged], [[1], []])
  })

  it('does not wait for a worker that ends: its replacement starts with the state', async () => {
    const { join, diverged } = makeHost()
    const one = join(1)
    const two = join(2, () => new Promise(() => two.close()))
    const next = withA(initialState)
    await one.state.write(next)
    assert.deepEqual(await one.state.missing(next, 5000), [])
    assert.deepEqual([diverged, (await join(2).state.read()).stamp], [[], next.stamp])
  })

  it('does not wait for a worker that is still loading, and gives it unlimited time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { join, diverged } = makeHost()
    let free: () => void = () => {}
    const loaded = new Promise<void>((resolve) => (free = resolve))
    const [one, two] = [join(1), join(2, () => loaded, false)]
    const next = withA(initialState)
    await one.state.write(next)
    assert.deepEqual(await one.state.missing(next, 5000), [])
    t.mock.timers.tick(3_600_000)
    free()
    while (two.applied.length === 0) await nextTurn()
    assert.deepEqual(diverged, [])
  })

  it('passes read and write errors to the client of a worker', async () => {
    const refuse = (error: Error) => (): never => {
      throw error
    }
    const away = makeHost({ store: { read: refuse(awayError('gone')) } }).join(1)
    await assert.rejects(async () => away.state.read(), (error: unknown) => {
      assert.ok(error instanceof HttpError)
      assert.deepEqual([error.status, error.code, error.message], [503, 'shared_away', 'gone'])
      return true
    })
    const unsaved = makeHost({ store: { write: refuse(new RoutesUnsavedError('the disk is full')) } }).join(1)
    await assert.rejects(async () => unsaved.state.write(withA(initialState)), new RoutesUnsavedError('the disk is full'))
  })

  it('reports machines that have not applied it, in addition to workers', async () => {
    const { join } = makeHost({ store: { missing: () => ['node a:1: no'] } })
    assert.deepEqual(await join(1).state.missing(withA(initialState), 5000), ['node a:1: no'])
  })
})

describe('a state of another machine', () => {
  it('is applied by one worker before the others, so that a bad state breaks nothing', async () => {
    const { host, join, diverged } = makeHost()
    let wrong = true
    const one = join(1, () => {
      if (wrong) throw new Error('the file is wrong')
    })
    const two = join(2)
    await assert.rejects(host.apply(withA(initialState)), /^RemoteError: the file is wrong$/)
    assert.deepEqual([two.applied, diverged], [[], []])
    wrong = false
    await host.apply(withA(initialState))
    assert.deepEqual([one.applied, two.applied], [[1], [1]])
  })

  it('goes to the next worker when the first hangs, which is replaced', async () => {
    const { host, join, diverged } = makeHost({ patienceMs: 500 })
    join(1, () => new Promise(() => {}))
    const two = join(2)
    await host.apply(withA(initialState))
    assert.deepEqual([two.applied, diverged], [[1], [1]])
  })
})

describe('a command about the machine', () => {
  it('runs in the other workers that serve', async () => {
    const { join, seen } = makeHost()
    const [one, two, late] = [join(1), join(2), join(3, () => {}, false)]
    assert.deepEqual(await one.state.everywhere({ type: 'cache.clear' }), [])
    assert.deepEqual([one.commands, two.commands, late.commands], [[], ['cache.clear'], []])
    assert.deepEqual(seen, ['cache.clear'])
  })

  it('runs in the primary when it concerns the whole server', async () => {
    const { join, asked } = makeHost()
    for (const type of ['stop', 'logs.reopen'] as const satisfies MachineCommandType[]) await join(1).state.applyToServer({ type })
    assert.deepEqual(asked, ['stop', 'logs.reopen'])
  })
})

describe('the nodes view of workers', () => {
  it('is updated by the primary, even before the worker has joined', async () => {
    const [here, there] = memoryPorts()
    const [primary, worker] = [new Peer(here), new Peer(there)]
    const state = { isReady: false, warnings: ['w'] }
    const host = hostNodes({
      get isReady() {
        return state.isReady
      },
      warnings: () => state.warnings,
      list: async () => [listedNode],
      errors: async () => {
        if (state.isReady) throw awayError('the engine is away')
        return []
      },
      clearErrors: async () => {},
    })
    const view = listenForNodes(worker)
    host.attach(primary)
    const joined = view(host.health())
    assert.deepEqual([joined.isReady, joined.warnings(), await joined.list()], [false, ['w'], [listedNode]])
    Object.assign(state, { isReady: true, warnings: [] })
    host.healthChanged()
    host.healthChanged()
    await joined.list()
    assert.deepEqual([joined.isReady, joined.warnings()], [true, []])
    assert.equal(view({ isReady: false, warnings: [] }).isReady, true)
    const isAway = (error: unknown): boolean => error instanceof HttpError && error.status === 503
    await assert.rejects(joined.errors(), isAway)
    await joined.clearErrors()
    assert.equal(here.sent.filter((text) => text.includes('nodes.health')).length, 1)
  })
})
