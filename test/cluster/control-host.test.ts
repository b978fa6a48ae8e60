import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createControlHost, type Member } from '../../lib/cluster/control-host.ts'
import { createPeer } from '../../lib/cluster/peer.ts'
import { createClusterRelay } from '../../lib/cluster/relay.ts'
import type { Change } from '../../lib/control/relay.ts'
import { silentLogger } from '../../lib/log/silent.ts'
import { memoryPorts } from './memory-ports.ts'

const added = (name: string, persist = false): Change => ({ command: { type: 'routes.add', record: { name }, persist } })
const deleted = (name: string): Change => ({ command: { type: 'routes.delete', name } })
const reloaded: Change = { command: { type: 'routes.reload' } }

function makeHost(patienceMs?: number) {
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
