import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Peer, workerPort, DisconnectedError, RemoteError } from '../../lib/cluster/peer.ts'
import { memoryPorts } from './memory-ports.ts'

/** Two peers in this process, and the ports below them. */
function pair() {
  const [here, there] = memoryPorts()
  const errors: unknown[] = []
  const a = new Peer(here, (error) => errors.push(error))
  const b = new Peer(there, (error) => errors.push(error))
  return { a, b, here, there, errors }
}

describe('a peer', () => {
  it('answers with the value or promise of the handler', async () => {
    const { a, b } = pair()
    b.on('double', (taken) => (taken as number) * 2)
    b.on('later', async (taken) => {
      await new Promise((resolve) => setImmediate(resolve))
      return taken
    })
    assert.equal(await a.call('double', 21), 42)
    assert.deepEqual(await a.call('later', { a: [1, null, 'é\ud800\u2028'] }), { a: [1, null, 'é\ud800\u2028'] })
  })

  it('distinguishes undefined from null', async () => {
    const { a, b } = pair()
    b.on('same', (taken) => taken)
    b.on('kind', (taken) => String(taken))
    assert.deepEqual([await a.call('same'), await a.call('same', null)], [undefined, null])
    assert.deepEqual([await a.call('kind'), await a.call('kind', null)], ['undefined', 'null'])
  })

  it('sends everything of one turn in one message, in order', async () => {
    const { a, b, here, there } = pair()
    const heard: unknown[] = []
    b.on('note', (taken) => heard.push(taken))
    b.on('call', (taken) => {
      heard.push(taken)
      b.notify('seen', taken)
      return taken
    })
    a.on('seen', (taken) => heard.push(`seen ${String(taken)}`))
    a.notify('note', 1)
    const second = a.call('call', 2)
    a.notify('note', 3)
    await Promise.resolve()
    const fourth = a.call('call', 4)
    assert.deepEqual(await Promise.all([second, fourth]), [2, 4])
    assert.deepEqual(heard, [1, 2, 3, 4, 'seen 2', 'seen 4'])
    assert.deepEqual(here.sent, ['["svc",[0,"note",1],[1,"call",2],[0,"note",3],[2,"call",4]]'])
    assert.deepEqual(there.sent, ['["svc",[0,"seen",2],[-1,2],[0,"seen",4],[-2,4]]'])
  })

  it('handles a message in one turn, and sends synchronous answers in order', async () => {
    const { a, b } = pair()
    const order: string[] = []
    b.on('at once', (taken) => taken)
    b.on('later', (taken) => new Promise((resolve) => setImmediate(() => resolve(taken))))
    await Promise.all(
      ['later', 'at once', 'at once'].map((name, at) => a.call(name, at).then((value) => order.push(`${name} ${value}`))),
    )
    assert.deepEqual(order, ['at once 1', 'at once 2', 'later 0'])
  })

  it('rejects with the message of the handler\'s error', async () => {
    const { a, b, errors } = pair()
    b.on('throws', () => {
      throw new RangeError('too far')
    })
    b.on('rejects', () => Promise.reject(new Error('not now')))
    b.on('odd', () => {
      throw 'a text' // Anything can be thrown.
    })
    await assert.rejects(a.call('throws'), (error) => error instanceof RemoteError && error.message === 'too far')
    await assert.rejects(a.call('rejects'), { name: 'RemoteError', message: 'not now' })
    await assert.rejects(a.call('odd'), { name: 'RemoteError', message: 'a text' })
    await assert.rejects(a.call('nobody'), { name: 'RemoteError', message: 'There is no handler "nobody"' })
    assert.deepEqual(errors, [])
  })

  it('reports a failed notification', async () => {
    const { a, b, errors } = pair()
    b.on('throws', () => {
      throw new RangeError('too far')
    })
    b.on('rejects', () => Promise.reject(new Error('not now')))
    b.on('last', () => undefined)
    for (const name of ['throws', 'rejects', 'nobody']) a.notify(name)
    await a.call('last')
    assert.deepEqual(errors.map(String).sort(), [
      'Error: There is no handler "nobody"',
      'Error: not now',
      'RangeError: too far',
    ])
  })

  it('sends the rest of a turn when one entry cannot be sent', async () => {
    const { a, b, errors } = pair()
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    b.on('same', (taken) => taken)
    b.on('circular', () => circular)
    const outcomes = await Promise.allSettled([
      a.call('same', 1),
      a.call('same', circular),
      a.call('circular'),
      a.call('same', 10n),
      a.call('same', 2),
      a.notify('same', circular),
    ])
    const [first, second, third, fourth, fifth] = outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error).name,
    )
    assert.deepEqual([first, second, third, fourth, fifth], [1, 'TypeError', 'RemoteError', 'TypeError', 2])
    assert.match(String(errors), /^TypeError: Converting circular structure/)
  })

  it('rejects pending and later calls when the channel closes', async () => {
    const { a, b, here } = pair()
    let handled = 0
    b.on('never', () => {
      handled += 1
      return new Promise(() => {})
    })
    const waiting = a.call('never')
    const refused = assert.rejects(waiting, (error) => error instanceof DisconnectedError)
    while (handled === 0) await new Promise((resolve) => setImmediate(resolve))
    const notSent = assert.rejects(a.call('never'), { name: 'DisconnectedError' })
    here.close()
    await Promise.all([a.closed, b.closed, refused, notSent])
    await assert.rejects(a.call('never'), { name: 'DisconnectedError' })
    a.notify('never')
    assert.equal(here.sent.length, 1)
  })

  it('accepts one handler per name', () => {
    const { a } = pair()
    a.on('x', () => {})
    assert.throws(() => a.on('x', () => {}), { message: 'Cannot set the handler "x" of a peer: it has one' })
  })

  it('ignores foreign messages', () => {
    const { a, here, errors } = pair()
    a.on('x', () => assert.fail('not for us'))
    for (const message of [{ cmd: 'NODE_CLUSTER' }, null, 'svc', ['other', [0, 'x']], [], 7]) {
      Reflect.apply(Reflect.get(here, 'receive') as (message: unknown) => void, here, [message])
    }
    assert.deepEqual(errors, [])
  })

  it('requires a channel', () => {
    assert.throws(() => workerPort(), { message: 'Cannot open a port: the process has no IPC channel' })
  })
})
