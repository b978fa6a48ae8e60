/**
 * Measures how long the event loop is blocked: a timer that is due every 50 ms records how late it fires.
 * A longer interval would miss short delays; a shorter one would add measurable load to an idle machine.
 *
 * `perf_hooks.monitorEventLoopDelay` measures the same, but its values include its period, its `reset()` skips the
 * first delay after it, and it cannot report a delay as it happens.
 */
import { performance } from 'node:perf_hooks'
import { RateLimited } from '../base/rate-limited.ts'
import { Histogram } from './histogram.ts'

/** When a delay of the event loop is reported, and where. */
export interface EventLoopOptions {
  /** The shortest delay to report, in milliseconds; 250 by default. */
  readonly boundMs?: number
  /** Called with the line about such a delay, at most once in 10 seconds. */
  readonly warn?: (message: string) => void
  /** A monotonic clock in milliseconds; `performance.now` by default. */
  readonly now?: () => number
}

/** The measurements of the event loop. */
export type EventLoopWatch = ReturnType<typeof createEventLoopWatch>

const everyMs = 50
const warnEveryMs = 10_000

/** Starts watching the event loop of this process. Does not keep the process alive. */
export function createEventLoopWatch(options: EventLoopOptions = {}) {
  const { boundMs = 250, warn = () => {}, now = () => performance.now() } = options
  const delay = new Histogram()
  const warnings = new RateLimited(warn, warnEveryMs, now)
  let lastAt = now()

  function tick(): void {
    const at = now()
    const delayMs = at - lastAt - everyMs
    lastAt = at
    delay.record(delayMs)
    if (delayMs >= boundMs) warnings.say(`the event loop was blocked for ${Math.round(delayMs)} ms`)
  }

  const timer = setInterval(tick, everyMs).unref()
  return {
    /** How late the timer fired. */
    delay,
    /** Seconds since the process started during which the loop was active. */
    get activeSeconds(): number {
      return performance.eventLoopUtilization().active / 1000
    },
    /** Seconds since the process started during which it was idle. */
    get idleSeconds(): number {
      return performance.eventLoopUtilization().idle / 1000
    },
    close: (): void => clearInterval(timer),
  }
}
