/**
 * The last minutes of the server, for the charts of the monitor page: a sample every few seconds, in a fixed ring.
 *
 * Surprise: when the clock is set back, the earlier samples are set back with it, so that the times only ever grow.
 * When it leaps ahead, or the machine slept, there is a gap.
 */
import { performance } from 'node:perf_hooks'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { round3 } from './round.ts'

/** What a sample holds. Rates are per second, times in milliseconds, memory in units of 2^20 bytes. */
export const sampleFields = [
  'requests',
  'errors',
  'p50_ms',
  'p95_ms',
  'p99_ms',
  'busy_http',
  'queue_http',
  'longpoll',
  'sse',
  'ws',
  'loop_p99_ms',
  'utilization',
  'rss_mb',
  'heap_mb',
  'connections',
  'bytes_out',
] as const

/** The name of a number in a sample. */
export type SampleField = (typeof sampleFields)[number]

/** The numbers of one moment. */
export type Sample = Readonly<Record<SampleField, number>>

/** A list for each number, and `time` in milliseconds since 1970; the oldest first, all of one length. */
export type HistorySnapshot = Readonly<Record<'time' | SampleField, readonly number[]>>

export interface HistoryOptions {
  /**
   * Gives the numbers of the interval since it was last called, at once or later; it is not called again before that. It
   * must not reject.
   */
  readonly sample: () => MaybePromise<Sample>
  /** Milliseconds from one sample to the next; 5000 unless given. */
  readonly everyMs?: number
  /** How many samples are kept; 180 unless given, which makes 15 minutes. */
  readonly keep?: number
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
  /** The calendar's clock in milliseconds; `Date.now` unless given. */
  readonly wallNow?: () => number
}

export interface History {
  /** Takes a sample now, unless one is awaited; a timer does so every `everyMs`. */
  take(): void
  /** The samples of the last `keep * everyMs` milliseconds. Numbers have three decimals at most. */
  snapshot(): HistorySnapshot
  close(): void
}

const width = sampleFields.length

/** Begins to take samples; the first is there after `everyMs`. It does not keep the process alive. */
export function createHistory(options: HistoryOptions): History {
  const { sample, everyMs = 5000, keep = 180, now = () => performance.now(), wallNow = Date.now } = options
  const times = new Float64Array(keep)
  const values = new Float64Array(keep * width)
  let taken = 0
  let isAwaited = false
  let lastAt = now()
  let lastWall = wallNow()

  function take(): void {
    if (isAwaited) return
    isAwaited = true
    void after(sample(), (numbers) => {
      isAwaited = false
      put(numbers)
    })
  }

  function put(numbers: Sample): void {
    const at = now()
    const wall = wallNow()
    if (wall <= lastWall) shift(wall - lastWall - Math.max(at - lastAt, 1))
    lastAt = at
    lastWall = wall
    const row = taken % keep
    times[row] = wall
    for (let column = 0; column < width; column += 1) {
      const value = numbers[sampleFields[column] as SampleField]
      values[row * width + column] = Number.isFinite(value) ? round3(value) : 0
    }
    taken += 1
  }

  function shift(byMs: number): void {
    for (let row = 0; row < keep; row += 1) times[row]! += byMs // `row` is in the array
  }

  function rows(): number[] {
    const first = Math.max(0, taken - keep)
    const list = Array.from({ length: taken - first }, (_, at) => (first + at) % keep)
    const oldest = lastWall - keep * everyMs
    return list.filter((row) => (times[row] as number) >= oldest)
  }

  const timer = setInterval(take, everyMs).unref()

  return {
    take,
    snapshot: () => {
      const kept = rows()
      const series = sampleFields.map((field, column) => [
        field,
        kept.map((row) => values[row * width + column] as number),
      ])
      const time = kept.map((row) => Math.round(times[row] as number))
      return { time, ...Object.fromEntries(series) } as HistorySnapshot // an entry per field, from the list above
    },
    close: () => clearInterval(timer),
  }
}
