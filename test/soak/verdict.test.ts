import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Holdings } from './server.ts'
import { heapSlope, judge, memoryTolerances, objectTolerance, type Round } from './verdict.ts'

const megabyte = 2 ** 20
const calm: Holdings = {
  rss: 100 * megabyte,
  heapUsed: 15 * megabyte,
  external: 6 * megabyte,
  arrayBuffers: 0,
  handles: { TCPServerWrap: 1, Timeout: 1 },
  objects: { timers: 6, sockets: 4 },
  descriptors: { file: 5, socket: 4 },
  temporaryFiles: 0,
}

/** Rounds of 1000 requests each that hold what they are given, and else what is calm. */
function roundsOf(held: readonly Partial<Holdings>[], busy: Readonly<Record<string, number>> = {}): Round[] {
  return held.map((each, at) => ({ seconds: at, requests: at * 1000, holdings: { ...calm, ...each }, busy }))
}

/** Eight rounds in which something grows from round to round. */
const growing = (held: (round: number) => Partial<Holdings>): Round[] =>
  roundsOf(Array.from({ length: 8 }, (_, round) => held(round)))

const leaksOf = (rounds: readonly Round[]): string[] => judge(rounds).filter(({ holds }) => !holds).map(({ name }) => name)

test('a server that holds what it held does not leak', () => {
  assert.deepEqual(leaksOf(roundsOf([{}, {}, {}, {}], { streams: 0 })), [])
  assert.deepEqual(leaksOf(growing((round) => ({ heapUsed: calm.heapUsed - round, descriptors: {} }))), [])
})

const leaks: readonly (readonly [string, (round: number) => Partial<Holdings>])[] = [
  ['heap used', (round) => ({ heapUsed: calm.heapUsed + round * memoryTolerances.heap * 0.2 })],
  ['external', (round) => ({ external: calm.external + round * memoryTolerances.external * 0.2 })],
  ['resident', (round) => ({ rss: calm.rss + round * memoryTolerances.rss * 0.2 })],
  ['descriptors: file', (round) => ({ descriptors: { file: 5 + Math.floor(round / 7), socket: 4 } })],
  ['descriptors: pipe', (round) => ({ descriptors: { ...calm.descriptors, ...(round === 7 ? { pipe: 1 } : {}) } })],
  ['handles: Timeout', (round) => ({ handles: { TCPServerWrap: 1, Timeout: 1 + round } })],
  ['objects: timers', (round) => ({ objects: { timers: 6 + round, sockets: 4 } })],
  ['temporary files', (round) => ({ temporaryFiles: round })],
]
for (const [name, held] of leaks) {
  test(`finds a leak of ${name}`, () => assert.deepEqual(leaksOf(growing(held)), [name]))
}

test('one round with more memory, and the timers of Node, are no leak', () => {
  const peak = { heapUsed: calm.heapUsed * 2 }
  assert.deepEqual(leaksOf(roundsOf([{}, {}, {}, {}, {}, {}, {}, {}, {}, peak, {}, {}])), [])
  assert.deepEqual(leaksOf(roundsOf([{}, { objects: { timers: 6 + objectTolerance, sockets: 4 } }])), [])
})

test('whatever is still busy without clients is a leak', () => {
  assert.deepEqual(leaksOf(roundsOf([{}, {}], { streams: 0, 'long polls': 1 })), ['long polls'])
})

test('the slope of the heap is that of the line through the rounds', () => {
  assert.equal(heapSlope(growing((round) => ({ heapUsed: calm.heapUsed + round * 500 }))), 500)
  assert.equal(heapSlope(roundsOf([{}, {}, {}])), 0)
})

test('no verdict without two rounds', () => {
  assert.throws(() => judge(roundsOf([{}])), RangeError)
})
