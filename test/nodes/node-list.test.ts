import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { beatIn, listed, mayApply, notListedAgain, type NodeEntry, type SeenNode } from '../../lib/nodes/node-list.ts'

const bytes = (value: string): Buffer => Buffer.from(value)

describe('the list of nodes', () => {
  const entry: NodeEntry = {
    name: 'b:2', state: 'ready', problem: '', version: '1', pid: 1, processes: 1, uptime_s: 1, requests: 1, errors: 0,
    per_second: 0, active: 0, rss_mb: 1, loop_p99_ms: 1, seq: 3, stamp: 's', tried: 3,
  }
  const seen = (id: string, agoMs: number, more: Partial<NodeEntry> = {}): SeenNode => {
    return { id, entry: { ...entry, ...more }, agoMs, listens: true }
  }

  it('is parsed from the reply to a beat, without invalid entries', () => {
    const nodes = ['one', JSON.stringify(entry), 'two', '{"name":"x"}', 'three', 'no JSON', 'four', JSON.stringify(entry)]
    const scores = ['one', '9000', 'two', '9000', 'three', '9000']
    const reply = [10_000, bytes('s'), nodes.map(bytes), scores.map(bytes), [bytes('own:one'), 1], 1]
    assert.deepEqual(beatIn(reply, 'own:'), {
      nowMs: 10_000,
      stamp: 's',
      nodes: [{ id: 'one', entry, agoMs: 1000, listens: true }],
      isNew: true,
    })
    assert.deepEqual(beatIn([10_000, null, [], [], [], 0], 'own:'), { nowMs: 10_000, stamp: '', nodes: [], isNew: false })
  })

  it('is kept for five seconds when the engine has lost it, except nodes listed again or already gone', () => {
    const before = [seen('1', 0), seen('2', 100), seen('3', 4000), seen('4', 6000)]
    const ids = (elapsedMs: number): string[] => notListedAgain(before, [seen('1', 0)], elapsedMs).map(({ id, agoMs }) => `${id} ${agoMs}`)
    assert.deepEqual(ids(900), ['2 1000', '3 4900'])
    assert.deepEqual(ids(1000), ['2 1100'])
  })

  it('has nodes that may still apply a state: those with a connection, and those that have not missed two beats', () => {
    const rows: [agoMs: number, listens: boolean, may: boolean][] = [[0, true, true], [4900, true, true], [2400, false, true], [2500, false, false]]
    for (const [agoMs, listens, may] of rows) assert.equal(mayApply({ ...seen('1', agoMs), listens }), may, `${agoMs} ${listens}`)
  })

  it('omits a gone node that is back under the same name', () => {
    const back = [seen('1', 100), seen('old', 60_000), seen('2', 60_000, { name: 'a:10' })]
    assert.deepEqual(listed(back, '1', true).map(({ name, state }) => `${name} ${state}`), ['a:10 gone', 'b:2 ready'])
  })

  it('is sorted by name and includes gone nodes; other nodes are unknown while the engine is away', () => {
    const nodes = [seen('1', 100), seen('2', 5000, { name: 'a:10' }), seen('3', 200, { name: 'a:9', state: 'behind' })]
    const short = (isHeard: boolean) => listed(nodes, '1', isHeard).map(({ name, state, self, seen_s }) => [name, state, self, seen_s])
    assert.deepEqual(short(true), [['a:9', 'behind', false, 0.2], ['a:10', 'gone', false, 5], ['b:2', 'ready', true, 0.1]])
    assert.deepEqual(short(false).map(([, state]) => state), ['unknown', 'unknown', 'cut off'])
  })
})
