import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { Acknowledgements } from '../../lib/nodes/acknowledgements.ts'
import { judge } from '../../lib/nodes/credentials.ts'
import { acknowledgementIn, messageIn, textOf, type Message } from '../../lib/nodes/messages.ts'
import { beatIn, listed, liveIds, type NodeEntry, type SeenNode } from '../../lib/nodes/registry.ts'
import { TraceEnds } from '../../lib/nodes/trace-ends.ts'

const bytes = (value: string): Buffer => Buffer.from(value)

describe('the answers of nodes to a change', () => {
  const said = (node: string, lines: readonly string[] = [], stamp = 's') => ({ stamp, node, name: node.toUpperCase(), lines })
  const position = { seq: 5, stamp: 's' }
  const make = (patienceMs = 60_000): Acknowledgements => new Acknowledgements(patienceMs, (id) => id.toUpperCase())

  it('are waited for, those too that come before the waiting begins', async () => {
    const answers = make()
    answers.expect(position)
    answers.take(said('a'))
    answers.take(said('b', ['no'], 'another'))
    const all = answers.all(position, ['a', 'b'])
    answers.take(said('b', ['it does not load', 'process 2: no']))
    answers.take(said('b', ['twice']))
    assert.deepEqual(await all, ['node B: it does not load', 'node B: process 2: no'])
  })

  it('are not waited for where there is nobody', async () => {
    const answers = make()
    answers.expect(position)
    assert.deepEqual(await answers.all(position, []), [])
  })

  it('may be known from the list of nodes; who has left or died is not waited for', async () => {
    const answers = make()
    answers.expect(position)
    const all = answers.all(position, ['told', 'left', 'dead', 'late'])
    answers.look([
      { id: 'told', seq: 5, isThere: true },
      { id: 'left', seq: 4, isThere: true },
      { id: 'dead', seq: 4, isThere: false },
    ])
    answers.left('left')
    answers.left('nobody')
    answers.take(said('late'))
    assert.deepEqual(await all, [])
  })

  it('of two changes are told apart', async () => {
    const answers = make()
    const other = { seq: 6, stamp: 't' }
    for (const each of [position, other]) answers.expect(each)
    answers.forget(position)
    assert.deepEqual(await answers.all(position, ['a']), [])
    answers.expect(position)
    const [one, two] = [answers.all(position, ['a']), answers.all(other, ['a'])]
    answers.take(said('a', ['no'], 't'))
    assert.deepEqual(await two, ['node A: no'])
    answers.take(said('a'))
    assert.deepEqual(await one, [])
  })

  it('are missed after a while, by name', async () => {
    const answers = make(20)
    answers.expect(position)
    assert.deepEqual(await answers.all(position, ['a']), ['node A: it did not answer within 0.02 s'])
    answers.take(said('a'))
    answers.look([])
  })
})

describe('the credentials of a node', () => {
  const none = { user: '', password: '', secret: '' }
  const one = { user: 'a', password: 'p', secret: 's' }

  it('are its own, or those that are shared', () => {
    const rows = [
      [none, undefined, 'same'],
      [none, one, 'take'],
      [{ ...none, secret: 'x' }, one, 'take'],
      [one, undefined, 'give'],
      [one, one, 'same'],
      [{ ...one, secret: '' }, one, 'take'],
      [one, { ...one, secret: '' }, 'give'],
      [one, { ...one, secret: 'other' }, 'differ'],
      [one, { ...one, user: 'other' }, 'differ'],
      [{ ...one, secret: '' }, { ...one, password: 'other' }, 'differ'],
    ] as const
    for (const [own, shared, expected] of rows) assert.equal(judge(own, shared), expected, JSON.stringify([own, shared]))
  })
})

describe('messages between nodes', () => {
  it('are read as they were written', () => {
    const messages: readonly Message[] = [
      { kind: 'turn-ended' },
      { kind: 'look' },
      { kind: 'left', node: 'n', name: 'a:1' },
      { kind: 'recorded', node: 'n', after: { seq: 2, stamp: 'b' } },
    ]
    for (const message of messages) assert.deepEqual(messageIn(textOf(message)), message)
    const answer = { stamp: 's', node: 'n', name: 'a:1', lines: ['x'] }
    assert.deepEqual(acknowledgementIn(textOf(answer)), answer)
  })

  it('are passed over where they are none', () => {
    const position = '{"seq":1,"stamp":""}'
    const texts = [
      '', 'x', 'null', '[]', '1', '{}', '{"kind":"other"}', '{"kind":"left","node":1,"name":"a"}', '{"kind":"recorded","node":"n"}',
      `{"kind":"recorded","node":1,"after":${position}}`, '{"kind":"recorded","node":"n","after":{"seq":"1","stamp":""}}',
    ]
    for (const text of texts) assert.equal(messageIn(text), undefined, text)
    for (const text of ['', '{}', '{"stamp":"s","node":"n","name":"a","lines":[1]}']) assert.equal(acknowledgementIn(text), undefined)
  })
})

describe('the list of nodes', () => {
  const entry: NodeEntry = {
    name: 'b:2', state: 'ready', problem: '', version: '1', pid: 1, processes: 1, uptime_s: 1, requests: 1, errors: 0,
    per_second: 0, active: 0, rss_mb: 1, loop_p99_ms: 1, seq: 3, stamp: 's',
  }
  const seen = (id: string, agoMs: number, more: Partial<NodeEntry> = {}): SeenNode => {
    return { id, entry: { ...entry, ...more }, agoMs, listens: true }
  }

  it('is read from what a beat gives, without what no node wrote', () => {
    const nodes = ['one', JSON.stringify(entry), 'two', '{"name":"x"}', 'three', 'no JSON', 'four', JSON.stringify(entry)]
    const scores = ['one', '9000', 'two', '9000', 'three', '9000']
    const reply = [10_000, bytes('3'), bytes('s'), nodes.map(bytes), scores.map(bytes), [bytes('own:one'), 1]]
    assert.deepEqual(beatIn(reply, 'own:'), {
      nowMs: 10_000,
      position: { seq: 3, stamp: 's' },
      nodes: [{ id: 'one', entry, agoMs: 1000, listens: true }],
    })
  })

  it('has who is there, by the newest of them', () => {
    assert.deepEqual(liveIds(['a', '1000', 'b', '6500', 'c', '1500', 'd', '1501'].map(bytes)), ['b', 'd'])
  })

  it('leaves out who is gone and back under the same name', () => {
    const back = [seen('1', 100), seen('old', 60_000), seen('2', 60_000, { name: 'a:10' })]
    assert.deepEqual(listed(back, '1', true).map(({ name, state }) => `${name} ${state}`), ['a:10 gone', 'b:2 ready'])
  })

  it('is by name, with who is gone; while the engine is away nothing is known of others', () => {
    const nodes = [seen('1', 100), seen('2', 5000, { name: 'a:10' }), seen('3', 200, { name: 'a:9', state: 'behind' })]
    const short = (isHeard: boolean) => listed(nodes, '1', isHeard).map(({ name, state, self, seen_s }) => [name, state, self, seen_s])
    assert.deepEqual(short(true), [['a:9', 'behind', false, 0.2], ['a:10', 'gone', false, 5], ['b:2', 'ready', true, 0.1]])
    assert.deepEqual(short(false).map(([, state]) => state), ['unknown', 'unknown', 'cut off'])
  })
})

describe('trace switches with a time', () => {
  it('go back once, at their time, to what the last state says', (t) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    t.after(() => mock.timers.reset())
    const ended: unknown[] = []
    const ends = new TraceEnds((...told) => ended.push(told))
    const state = (entries: Record<string, object>) =>
      new Map(Object.entries(entries).map(([module, each]) => [`trace:${module}`, JSON.stringify(each)]))
    const both = state({ pool: { on: true, until: 2000, back: false }, server: { on: false, until: 3000 }, app: { on: true } })
    ends.follow(both, 1000)
    mock.timers.tick(500)
    ends.follow(both, 1500)
    mock.timers.tick(499)
    assert.deepEqual(ended, [])
    mock.timers.tick(1)
    assert.deepEqual(ended, [['pool', false]])
    ends.follow(both, 2000)
    ends.follow(state({ pool: { on: true }, server: { on: false, until: 4000, back: true } }), 2000)
    mock.timers.tick(1999)
    assert.equal(ended.length, 1)
    mock.timers.tick(1)
    assert.deepEqual(ended, [['pool', false], ['server', true]])
    ends.follow(state({ pool: { on: true, until: 9000 } }), 4000)
    ends.close()
    mock.timers.tick(10_000)
    assert.equal(ended.length, 2)
  })
})
