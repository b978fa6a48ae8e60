import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createControlHost, type Member } from '../../lib/cluster/control-host.ts'
import { hostNodes, listenForNodes } from '../../lib/cluster/nodes.ts'
import { createPeer } from '../../lib/cluster/peer.ts'
import { createClusterRelay } from '../../lib/cluster/relay.ts'
import type { Change } from '../../lib/control/relay.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { Nodes } from '../../lib/nodes/contract.ts'
import { awayError } from '../../lib/redis/away.ts'
import { listedNode } from '../support/node-panel.ts'
import { memoryPorts } from './memory-ports.ts'

const added = (name: string, persist = false): Change => ({ command: { type: 'routes.add', record: { name }, persist } })
const deleted = (name: string): Change => ({ command: { type: 'routes.delete', name } })
const reloaded: Change = { command: { type: 'routes.reload' } }

function makeHost(patienceMs?: number, nodes?: Pick<Nodes, 'turn'>) {
  const lines: string[] = []
  const switched: unknown[] = []
  const asked: string[] = []
  const diverged: number[] = []
  const seen: string[] = []
  const log = Object.assign(() => {}, silentLogger, {
    warn: (message: string) => lines.push(message),
    error: (message: string) => lines.push(message),
  })
  const host = createControlHost({
    log,
    trace: {
      set: (...given) => {
        switched.push(given)
        return {}
      },
    },
    onChange: ({ command }) => seen.push(command.type),
    ask: ({ type }) => asked.push(type),
    onDiverged: ({ number }) => diverged.push(number),
    nodes,
    ...(patienceMs !== undefined && { patienceMs }),
  })

  /** A worker that takes up changes, and its relay. */
  function join(number: number, takeUp: (change: Change) => unknown = () => {}, serving = true) {
    const [here, there] = memoryPorts()
    const member: Member & { serving: boolean } = { number, peer: createPeer(here), serving }
    const peer = createPeer(there)
    const taken: Change[] = []
    peer.on('control.follow', async (change) => {
      await takeUp(change as Change)
      taken.push(change as Change)
    })
    return { missed: host.join(member), relay: createClusterRelay(peer), taken, member, close: () => there.close() }
  }
  return { host, join, lines, switched, asked, diverged, seen }
}

describe('control over processes', () => {
  it('answers when each of the others has taken up a change', async () => {
    const { join, seen } = makeHost()
    let free: () => void = () => {}
    const held = new Promise<void>((resolve) => (free = resolve))
    const [one, two, three] = [join(1), join(2), join(3, () => held)]
    let answered = false
    const shared = one.relay.share(added('a')).then((missing) => {
      answered = true
      return missing
    })
    while (two.taken.length === 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(answered, false)
    assert.deepEqual(seen, ['routes.add'])
    free()
    assert.deepEqual(await shared, [])
    assert.deepEqual([one.taken, two.taken, three.taken], [[], [added('a')], [added('a')]])
  })

  it('gives one turn at a time, in the order in which they were asked for', async () => {
    const { join } = makeHost()
    const relays = [join(1).relay, join(2).relay, join(1).relay]
    const steps: string[] = []
    await Promise.all(
      relays.map(async (relay, at) => {
        const end = await relay.turn()
        steps.push(`in ${at}`)
        await new Promise((resolve) => setImmediate(resolve))
        steps.push(`out ${at}`)
        end()
      }),
    )
    assert.deepEqual(steps, ['in 0', 'out 0', 'in 1', 'out 1', 'in 2', 'out 2'])
  })

  it('goes on when a process ends in its turn or while it waits for one', async () => {
    const { join, lines } = makeHost()
    const [one, two, three] = [join(1), join(2), join(3)]
    await one.relay.turn()
    const lost = two.relay.turn().catch((error: Error) => error.name)
    const next = three.relay.turn()
    two.close()
    assert.equal(await lost, 'DisconnectedError')
    one.close()
    const end = await next
    end()
    assert.deepEqual(lines, ['process 1 ended in the middle of a change: reload the routes to be sure that all processes agree'])
  })

  it('has nothing to say of one that ends when its change is on its way, and then goes on with the next turn', async () => {
    const { join, lines } = makeHost()
    let free: () => void = () => {}
    const held = new Promise<void>((resolve) => (free = resolve))
    let asked = false
    const [one, two] = [join(1), join(2, () => ((asked = true), held))]
    await one.relay.turn()
    const lost = one.relay.share(added('a')).catch((error: Error) => error.name)
    let begun = false
    const next = two.relay.turn().then((end) => {
      begun = true
      end()
    })
    while (!asked) await new Promise((resolve) => setImmediate(resolve))
    one.close()
    assert.equal(await lost, 'DisconnectedError')
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(begun, false)
    free()
    await next
    assert.deepEqual([two.taken, lines], [[added('a')], []])
  })

  it('names a process that cannot take up a change, and gives it up', async () => {
    const { join, lines, diverged } = makeHost()
    const [one, , three] = [
      join(1),
      join(2, () => {
        throw new Error('the module does not load')
      }),
      join(3),
    ]
    assert.deepEqual(await one.relay.share(reloaded), ['process 2: the module does not load'])
    assert.deepEqual(three.taken, [reloaded])
    assert.deepEqual(diverged, [2])
    assert.deepEqual(lines, ['routes.reload was not taken up by process 2: the module does not load'])
  })

  it('gives up one that does not answer in time', async () => {
    const { join, diverged } = makeHost(20)
    const one = join(1)
    join(2, () => new Promise(() => {}))
    assert.deepEqual(await one.relay.share(reloaded), ['process 2: it did not answer within 0.02 s'])
    assert.deepEqual(diverged, [2])
  })

  it('counts one that ends meanwhile as well: who takes its place begins with the change', async () => {
    const { join, diverged } = makeHost()
    const one = join(1)
    const two = join(2, () => new Promise(() => two.close()))
    assert.deepEqual(await one.relay.share(added('a')), [])
    assert.deepEqual(diverged, [])
    assert.deepEqual(join(2).missed.changes, [added('a')])
  })

  it('does not wait for one that is still loading, which takes up what comes', async () => {
    const { join } = makeHost()
    let free: () => void = () => {}
    const loaded = new Promise<void>((resolve) => (free = resolve))
    const [one, two] = [join(1), join(2, () => loaded, false)]
    assert.deepEqual(await one.relay.share(added('a')), [])
    assert.deepEqual(two.taken, [])
    free()
    while (two.taken.length === 0) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(two.taken, [added('a')])
    const endTurn = await two.relay.turn() // What it answered comes before that, so nothing is waited for any more.
    endTurn()
  })

  it('lets one that is still loading take as long for a change as it takes to load', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { join, diverged } = makeHost()
    let free: () => void = () => {}
    const loaded = new Promise<void>((resolve) => (free = resolve))
    const [one, two] = [join(1), join(2, () => loaded, false)]
    assert.deepEqual(await one.relay.share(added('a')), [])
    t.mock.timers.tick(3_600_000)
    free()
    while (two.taken.length === 0) await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(diverged, [])
    const endTurn = await two.relay.turn() // As above.
    endTurn()
  })

  it('keeps for those that come later what the files do not hold', async () => {
    const { join } = makeHost()
    const admin = { user: 'root', password: 'hash', secret: 's', keySaved: true }
    const rows: readonly (readonly [changes: readonly Change[], missed: readonly Change[]])[] = [
      [[added('a'), deleted('b'), added('kept', true)], [added('a'), deleted('b')]],
      [[{ command: { type: 'cache.clear' } }, { command: { type: 'bench.start' } }], [added('a'), deleted('b')]],
      [[reloaded], []],
      [[deleted('a'), added('a')], [deleted('a'), added('a')]],
      [[deleted('a'), added('a')], [deleted('a'), added('a')]],
      [[added('b'), deleted('b')], [deleted('a'), added('a')]],
      [[deleted('a'), added('a', true)], []],
      [[deleted('a'), added('a')], [deleted('a'), added('a')]],
      [[{ command: { type: 'admin.secret' }, admin }], [deleted('a'), added('a')]],
    ]
    const { relay, missed } = join(1)
    assert.deepEqual(missed, { changes: [] })
    for (const [changes, expected] of rows) {
      for (const change of changes) await relay.share(change)
      assert.deepEqual(join(2).missed.changes, expected)
    }
    assert.deepEqual(join(2).missed.admin, admin)
  })

  it('switches the trace of the primary, with the time after which it goes back', async () => {
    const { join, switched } = makeHost()
    await join(1).relay.share({ command: { type: 'trace.set', module: 'pool', enabled: false, ttlSeconds: 9 } as never })
    assert.deepEqual(switched, [['pool', false, 9]])
  })

  it('spreads what no process made to all', async () => {
    const { host, join } = makeHost()
    const [one, two] = [join(1), join(2)]
    assert.deepEqual(await host.spread(reloaded), [])
    assert.deepEqual([one.taken, two.taken], [[reloaded], [reloaded]])
  })

  it('hands on what is about all processes', async () => {
    const { join, asked } = makeHost()
    await join(1).relay.ask({ type: 'stop' })
    assert.deepEqual(asked, ['stop'])
  })
})

describe('control over processes of a node', () => {
  /** The other nodes: notes what it is asked, and answers as it is told. */
  function makeNodes() {
    const steps: string[] = []
    const answers = { missing: [] as readonly string[], refusal: undefined as HttpError | undefined, unrecorded: undefined as HttpError | undefined }
    const nodes: Pick<Nodes, 'turn'> = {
      turn: async () => {
        if (answers.refusal !== undefined) throw answers.refusal
        steps.push('turn')
        return {
          record: async ({ command }) => {
            if (answers.unrecorded !== undefined) throw answers.unrecorded
            steps.push(`record ${command.type}`)
            return { missing: Promise.resolve(answers.missing) }
          },
          end: () => void steps.push('end'),
        }
      },
    }
    return { nodes, steps, answers }
  }

  it('records in the turn of all nodes before the workers are told, and names who has not taken it up', async () => {
    const { nodes, steps, answers } = makeNodes()
    const { join } = makeHost(undefined, nodes)
    const [one, two] = [join(1), join(2, () => void steps.push('told'))]
    answers.missing = ['node a:1: no']
    const end = await one.relay.turn()
    assert.deepEqual(await one.relay.share(added('a')), ['node a:1: no'])
    end()
    await two.relay.turn()
    assert.deepEqual(steps, ['turn', 'record routes.add', 'told', 'end', 'turn'])
  })

  it('does not tell other nodes what is about this one alone', async () => {
    const { nodes, steps } = makeNodes()
    const { join } = makeHost(undefined, nodes)
    const [one, two] = [join(1), join(2)]
    await one.relay.share({ command: { type: 'cache.clear' } })
    assert.deepEqual([steps, two.taken.length], [[], 1])
  })

  it('says 503 where the engine does not take it, and tells no worker', async () => {
    const { nodes, answers, steps } = makeNodes()
    const { join } = makeHost(undefined, nodes)
    const [one, two] = [join(1), join(2)]
    const isAway = (error: unknown): boolean =>
      error instanceof HttpError && error.status === 503 && error.code === 'shared_away' && error.message === 'gone'
    answers.refusal = awayError('gone')
    await assert.rejects(one.relay.turn(), isAway)
    answers.refusal = undefined
    answers.unrecorded = awayError('gone')
    const end = await one.relay.turn()
    await assert.rejects(one.relay.share(added('a')), isAway)
    end()
    await two.relay.turn()
    assert.deepEqual(two.taken, [])
    assert.deepEqual(steps, ['turn', 'end', 'turn'])
  })

  it('ends the turn of all nodes when its process ends', async () => {
    const { nodes, steps } = makeNodes()
    const { join } = makeHost(undefined, nodes)
    const [one, two] = [join(1), join(2)]
    await one.relay.turn()
    one.close()
    await two.relay.turn()
    assert.deepEqual(steps, ['turn', 'end', 'turn'])
  })

  it('takes up a change of another node in one process before the others, so that a wrong one does no harm', async () => {
    const { host, join, diverged } = makeHost()
    let wrong = true
    const one = join(1, () => {
      if (wrong) throw new Error('the file is wrong')
    })
    const two = join(2)
    await assert.rejects(host.takeUp(reloaded), /^RemoteError: the file is wrong$/)
    assert.deepEqual([two.taken, diverged], [[], []])
    wrong = false
    assert.deepEqual(await host.takeUp(added('a')), [])
    assert.deepEqual([one.taken, two.taken], [[added('a')], [added('a')]])
    assert.deepEqual(join(3).missed.changes, [added('a')])
  })

  it('gives up one that hangs, and goes on with the next', async () => {
    const { host, join, diverged } = makeHost(500)
    join(1, () => new Promise(() => {}))
    const two = join(2)
    assert.deepEqual(await host.takeUp(added('a')), ['process 1: it did not answer within 0.5 s'])
    assert.deepEqual([two.taken, diverged], [[added('a')], [1]])
  })

  it('keeps what is to last over a reload, until it is deleted', async () => {
    const { host, join } = makeHost()
    const kept: Change = { ...added('kept'), lasts: true }
    for (const change of [added('a'), kept, reloaded]) await host.takeUp(change)
    assert.deepEqual(join(1).missed.changes, [kept])
    for (const change of [deleted('kept'), reloaded]) await host.takeUp(change)
    assert.deepEqual(join(2).missed.changes, [])
  })

  it('leaves it to the node to set a trace switch back', async () => {
    const { join, switched } = makeHost(undefined, makeNodes().nodes)
    await join(1).relay.share({ command: { type: 'trace.set', module: 'pool', enabled: false, ttlSeconds: 9 } as never })
    assert.deepEqual(switched, [['pool', false, undefined]])
  })
})

describe('the nodes as workers know them', () => {
  it('are told by the primary, also when something changed before the worker knew', async () => {
    const [here, there] = memoryPorts()
    const [primary, worker] = [createPeer(here), createPeer(there)]
    const state = { isReady: false, warnings: ['w'] }
    const host = hostNodes({
      get isReady() {
        return state.isReady
      },
      warnings: () => state.warnings,
      list: async () => [listedNode],
    })
    const view = listenForNodes(worker)
    host.attach(primary)
    const joined = view(host.health)
    assert.deepEqual([joined.isReady, joined.warnings(), await joined.list()], [false, ['w'], [listedNode]])
    Object.assign(state, { isReady: true, warnings: [] })
    host.look()
    host.look()
    await joined.list()
    assert.deepEqual([joined.isReady, joined.warnings()], [true, []])
    assert.equal(view({ isReady: false, warnings: [] }).isReady, true)
    assert.equal(here.sent.filter((text) => text.includes('nodes.health')).length, 1)
  })
})
