/**
 * The last minutes of the server, for the charts of the monitor page: a sample every few seconds.
 *
 * When the clock is set back, the samples that are now ahead of it go. When it leaps ahead, or the machine slept, there
 * is a gap.
 */
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { percentileMs } from './histogram.ts'
import { countRequests } from './metrics.ts'
import { difference, utilizationOf, type Reading } from './reading.ts'
import { megabytes, round3 } from './values.ts'

/**
 * The numbers of a sample, made from the window since the last sample. Rates are per second, times in milliseconds,
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

/** A list for each number, and `time` in milliseconds since 1970; oldest first, all of one length. */
export type HistorySnapshot = Readonly<Record<'time' | SampleField, readonly number[]>>

/** How samples are taken, how often, and how many are kept. */
export interface HistoryOptions {
  /** Takes a sample of the time since the last call. One that fails is left out; none is taken while one is awaited. */
  readonly sample: () => MaybePromise<Sample>
  /** Milliseconds from one sample to the next; 5000 unless given. */
  readonly everyMs?: number
  /** How many samples are kept; 180 unless given, which makes 15 minutes. */
  readonly keep?: number
  /** Milliseconds since 1970; `Date.now` unless given. */
  readonly now?: () => number
}

/** The samples of the last minutes. */
export type History = ReturnType<typeof createHistory>

/** The shortest time of a sample, so that a rate is finite if the clock stands still. */
const leastSeconds = 0.001

/**
 * Takes the samples of a history by difference. The first sample is of the time since the start.
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

/** Begins to take samples, the first after `everyMs`. It does not keep the process alive. */
export function createHistory(options: HistoryOptions) {
  const { sample, everyMs = 5000, keep = 180, now = Date.now } = options
  let kept: { readonly time: number; readonly numbers: Sample }[] = []
  let isAwaited = false

  /** Takes a sample now, unless one is awaited; a timer does so every `everyMs`. */
  function take(): void {
    if (isAwaited) return
    isAwaited = true
    try {
      const taken = after(sample(), add)
      if (taken instanceof Promise) taken.catch(skip)
    } catch {
      skip() // The figures of the next sample have its time too. It must not end the process.
    }
  }

  function add(numbers: Sample): void {
    isAwaited = false
    const time = now()
    const before = kept.filter((each) => each.time <= time && each.time >= time - keep * everyMs)
    kept = [...before, { time, numbers }].slice(-keep)
  }

  function skip(): void {
    isAwaited = false
  }

  /** The samples of the `keep * everyMs` milliseconds before the last one. Numbers have three decimals at most. */
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
