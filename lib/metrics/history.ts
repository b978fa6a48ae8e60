/**
 * The last minutes of the server, for the charts of the monitor page: a sample every few seconds.
 *
 * When the clock is set back, samples that are now in the future are dropped. When it jumps ahead, or the machine
 * sleeps, there is a gap.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { percentileMs } from './histogram.ts'
import { countRequests } from './metrics.ts'
import { difference, utilizationOf, type Reading } from './reading.ts'
import { megabytes, round3 } from './values.ts'

/**
 * The numbers of a sample, computed from the window since the last sample. Rates are per second, times in milliseconds,
 * memory in units of 2^20 bytes.
 */
const series = {
  requests: ({ values, seconds }) => countRequests(values.requests).total / seconds,
  errors: ({ values, seconds }) => countRequests(values.requests).errors / seconds,
  p50_ms: ({ values }) => percentileMs(values.durations, 50),
  p95_ms: ({ values }) => percentileMs(values.durations, 95),
  p99_ms: ({ values }) => percentileMs(values.durations, 99),
  busy_http: ({ values }) => values.poolBusy.http,
  queue_http: ({ values }) => values.poolWaiting.http,
  longpoll: ({ values }) => values.poolBusy.longpoll,
  sse: ({ values }) => values.poolBusy.sse,
  ws: ({ values }) => values.poolBusy.ws,
  loop_p99_ms: ({ values }) => percentileMs(values.loopDelay, 99),
  utilization: ({ values }) => utilizationOf(values),
  rss_mb: ({ values }) => megabytes(values.memoryResident),
  heap_mb: ({ values }) => megabytes(values.heapUsed),
  connections: ({ values }) => values.connectionsOpen,
  bytes_out: ({ values, seconds }) => values.bytesOut / seconds,
} satisfies Readonly<Record<string, (window: Reading) => number>>

/** The name of a number in a sample. */
type SampleField = keyof typeof series

/** The names, in the order of the document. */
export const sampleFields = Object.keys(series) as SampleField[] // It has no other keys.

/** A sample. */
export type Sample = Readonly<Record<SampleField, number>>

/** A list for each number, and `time` in milliseconds since 1970; oldest first, all of the same length. */
export type HistorySnapshot = Readonly<Record<'time' | SampleField, readonly number[]>>

/** How samples are taken, how often, and how many are kept. */
export interface HistoryOptions {
  /** Samples the time since the last call. A failed sample is skipped; none is taken while one is pending. */
  readonly sample: () => MaybePromise<Sample>
  /** Milliseconds from one sample to the next; 5000 by default. */
  readonly everyMs?: number
  /** The number of samples kept; 180 by default, which is 15 minutes. */
  readonly keep?: number
  /** Milliseconds since 1970; `Date.now` by default. */
  readonly now?: () => number
}

/** The samples of the last minutes. */
export type History = ReturnType<typeof createHistory>

/** The shortest time of a sample, so that rates are finite even if the clock does not advance. */
const leastSeconds = 0.001

/**
 * Returns a function that samples by difference. The first sample covers the time since the start.
 * @param read returns a reading without routes
 */
export function createSampler(read: () => MaybePromise<Reading>): HistoryOptions['sample'] {
  let before: Reading | undefined
  return () =>
    after(read(), (now) => {
      const window = difference(now, before)
      before = now
      return sampleOf({ ...window, seconds: Math.max(window.seconds, leastSeconds) })
    })
}

/** Starts taking samples, the first after `everyMs`. Does not keep the process alive. */
export function createHistory(options: HistoryOptions) {
  const { sample, everyMs = 5000, keep = 180, now = Date.now } = options
  let kept: { readonly time: number; readonly numbers: Sample }[] = []
  let isPending = false

  /** Takes a sample now, unless one is pending; a timer does so every `everyMs`. */
  function take(): void {
    if (isPending) return
    isPending = true
    try {
      const taken = after(sample(), add)
      if (taken instanceof Promise) taken.catch(skip)
    } catch {
      skip() // The next sample covers this time too. A failure must not end the process.
    }
  }

  function add(numbers: Sample): void {
    isPending = false
    const time = now()
    const before = kept.filter((each) => each.time <= time && each.time >= time - keep * everyMs)
    kept = [...before, { time, numbers }].slice(-keep)
  }

  function skip(): void {
    isPending = false
  }

  /** The samples of the `keep * everyMs` milliseconds before the last one. Numbers have at most three decimals. */
  function snapshot(): HistorySnapshot {
    const lists = sampleFields.map((field) => [field, kept.map(({ numbers }) => shownNumber(numbers[field]))])
    const time = kept.map((each) => each.time)
    return { time, ...Object.fromEntries(lists) } as HistorySnapshot // It has a list for each field.
  }

  const timer = setInterval(take, everyMs).unref()
  return { take, snapshot, close: (): void => clearInterval(timer) }
}

function sampleOf(window: Reading): Sample {
  return Object.fromEntries(sampleFields.map((field) => [field, series[field](window)])) as Sample // of each field
}

function shownNumber(value: number): number {
  return Number.isFinite(value) ? round3(value) : 0
}
