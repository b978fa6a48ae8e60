/**
 * Whether a process leaks: what it holds at the end of a soak against what it held after the warm-up.
 *
 * Surprise: memory is compared by medians of several rounds, since one round may end with more code compiled; the rest
 * is compared between the first and the last round.
 */
import type { Holdings } from './server.ts'

/** A round: the requests that were answered since the start, and what was held when all clients had gone. */
export interface Round {
  readonly seconds: number
  readonly requests: number
  readonly holdings: Holdings
  /** Whatever else must be 0 then: requests, slots, waits. */
  readonly busy: Readonly<Record<string, number>>
}

/** One row of the verdict. */
export interface Judgement {
  readonly name: string
  readonly unit: 'bytes' | 'count'
  readonly before: number
  readonly after: number
  /** How much more `after` may be. */
  readonly tolerance: number
  readonly holds: boolean
}

/** By how much memory may grow between the warm-up and the end, in bytes. */
export const memoryTolerances = { heap: 3 * 2 ** 20, external: 4 * 2 ** 20, rss: 64 * 2 ** 20 } as const

/** Timers of Node's own, such as that of the date in its answers, come and go. */
export const objectTolerance = 2

/** @param rounds those after the warm-up, in order; at least 2 */
export function judge(rounds: readonly Round[]): Judgement[] {
  const first = rounds[0]
  const last = rounds.at(-1)
  if (first === undefined || last === undefined || rounds.length < 2) throw new RangeError('A verdict needs two rounds')
  const few = Math.ceil(rounds.length / 4)
  const memory = (name: string, read: (held: Holdings) => number, tolerance: number): Judgement => {
    const before = median(rounds.slice(0, few).map(({ holdings }) => read(holdings)))
    return judgement(name, before, median(rounds.slice(-few).map(({ holdings }) => read(holdings))), tolerance, 'bytes')
  }
  const counts = (name: string, read: (held: Holdings) => Readonly<Record<string, number>>, tolerance = 0): Judgement[] => {
    const [before, after] = [read(first.holdings), read(last.holdings)]
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].map((key) => judgement(`${name} ${key}`, before[key] ?? 0, after[key] ?? 0, tolerance))
  }
  return [
    memory('heap used', ({ heapUsed }) => heapUsed, memoryTolerances.heap),
    memory('external', ({ external }) => external, memoryTolerances.external),
    memory('resident', ({ rss }) => rss, memoryTolerances.rss),
    ...counts('descriptors:', ({ descriptors }) => descriptors),
    ...counts('handles:', ({ handles }) => handles),
    ...counts('objects:', ({ objects }) => objects, objectTolerance),
    ...Object.entries(last.busy).map(([key, value]) => judgement(key, 0, value, 0)),
    judgement('temporary files', 0, last.holdings.temporaryFiles, 0),
  ]
}

/** By how much the heap grows with each thousand requests, in bytes: the slope of the line that fits the rounds best. */
export function heapSlope(rounds: readonly Round[]): number {
  const [x, y] = [rounds.map(({ requests }) => requests / 1000), rounds.map(({ holdings }) => holdings.heapUsed)]
  const [meanX, meanY] = [mean(x), mean(y)]
  const spread = x.reduce((sum, each) => sum + (each - meanX) ** 2, 0)
  return x.reduce((sum, each, at) => sum + (each - meanX) * ((y[at] ?? 0) - meanY), 0) / spread
}

function judgement(
  name: string,
  before: number,
  after: number,
  tolerance: number,
  unit: 'bytes' | 'count' = 'count',
): Judgement {
  return { name, unit, before, after, tolerance, holds: after - before <= tolerance }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? NaN
}
