/**
 * How long the event loop is held up: a timer that should come every 50 ms notes how late it comes.
 * Less often, it would miss short delays; more often, its own waking would show on a machine at rest.
 *
 * Surprise: this is not `perf_hooks.monitorEventLoopDelay`, which measures the same with a timer of its own. After each
 * `reset()` that one leaves out the first delay, so that a histogram reset with every sample misses what blocks right
 * after; its values include its period; and it cannot tell of a delay when it happens.
 */
import { performance, type EventLoopUtilization } from 'node:perf_hooks'
import { RateLimited } from '../base/rate-limited.ts'
import { DurationBuckets, type DurationTotals } from './duration-buckets.ts'
import { percentileMs } from './duration-cells.ts'
import { Histogram, toMicroseconds, type DurationCells } from './histogram.ts'
import { round3 } from './round.ts'

export interface EventLoopOptions {
  /** The delay in milliseconds from which on it is told; 250 unless given. */
  readonly boundMs?: number
  /** Takes the line that tells of such a delay, at most one in 10 seconds. */
  readonly warn?: (message: string) => void
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
}

/** The delay and the utilization (0 to 1: the share of time in which the loop did not wait) since the last reset. */
export interface EventLoopSnapshot {
  readonly p50_ms: number
  readonly p99_ms: number
  readonly max_ms: number
  readonly utilization: number
}

/** The same since the last sample. */
export interface EventLoopInterval {
  readonly loop_p99_ms: number
  readonly utilization: number
}

/** The same since the watch began; it never goes back. */
export interface EventLoopTotals {
  readonly delay: DurationTotals
  /** The time in which the loop did not wait, since the process started. */
  readonly activeSeconds: number
}

/** What was counted of the event loop of a process since some moment. */
export interface EventLoopFigures {
  readonly delay: DurationCells
  /** How long the loop did not wait, and how long it did, in microseconds. */
  readonly activeUs: number
  readonly idleUs: number
}

export interface EventLoopWatch {
  /** All of the window as a value. */
  figures(): EventLoopFigures
  snapshot(): EventLoopSnapshot
  /** What was counted since this was last called. It has one caller: the history of the monitor. */
  takeCounts(): EventLoopFigures
  /** What happened since this or `takeCounts` was last called. */
  takeInterval(): EventLoopInterval
  totals(): EventLoopTotals
  /** Begins a new window for `snapshot`. */
  reset(): void
  close(): void
}

const everyMs = 50
const warnEveryMs = 10_000

/** What was counted as the status shows it. */
export function eventLoopWindow(figures: EventLoopFigures): EventLoopSnapshot {
  const { delay } = figures
  return {
    p50_ms: round3(percentileMs(delay, 50)),
    p99_ms: round3(percentileMs(delay, 99)),
    max_ms: round3(delay.maxUs / 1000),
    utilization: utilizationOf(figures),
  }
}

/** What was counted as a sample shows it. */
export function eventLoopInterval(figures: EventLoopFigures): EventLoopInterval {
  return { loop_p99_ms: round3(percentileMs(figures.delay, 99)), utilization: utilizationOf(figures) }
}

/** Begins to watch the event loop of this process. It does not keep the process alive. */
export function createEventLoopWatch(options: EventLoopOptions = {}): EventLoopWatch {
  const { boundMs = 250, warn = () => {}, now = () => performance.now() } = options
  const window = new Histogram()
  const interval = new Histogram()
  const totals = new DurationBuckets()
  const warnings = new RateLimited(warn, warnEveryMs, now)
  let windowUse: EventLoopUtilization = { idle: 0, active: 0, utilization: 0 } // The process's own beginning.
  let intervalUse = windowUse
  let lastAt = now()

  function tick(): void {
    const at = now()
    const delayMs = at - lastAt - everyMs
    lastAt = at
    window.record(delayMs)
    interval.record(delayMs)
    totals.record(delayMs)
    if (delayMs >= boundMs) warnings.say(`the event loop was held up for ${Math.round(delayMs)} ms`)
  }

  const timer = setInterval(tick, everyMs).unref()

  const figures = (): EventLoopFigures => ({ delay: window.toCells(), ...useSince(windowUse) })
  const takeCounts = (): EventLoopFigures => {
    const taken = { delay: interval.toCells(), ...useSince(intervalUse) }
    interval.reset()
    intervalUse = performance.eventLoopUtilization()
    return taken
  }

  return {
    figures,
    snapshot: () => eventLoopWindow(figures()),
    takeCounts,
    takeInterval: () => eventLoopInterval(takeCounts()),
    totals: () => ({
      delay: totals.totals(),
      activeSeconds: performance.eventLoopUtilization().active / 1000,
    }),
    reset: () => {
      window.reset()
      windowUse = performance.eventLoopUtilization()
    },
    close: () => clearInterval(timer),
  }
}

function useSince(earlier: EventLoopUtilization): Omit<EventLoopFigures, 'delay'> {
  const { idle, active } = performance.eventLoopUtilization()
  return { activeUs: toMicroseconds(active - earlier.active), idleUs: toMicroseconds(idle - earlier.idle) }
}

function utilizationOf({ activeUs, idleUs }: EventLoopFigures): number {
  return activeUs === 0 ? 0 : round3(activeUs / (activeUs + idleUs))
}
