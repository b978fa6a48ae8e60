/**
 * Measures how long the event loop is held up: a timer that is due every 50 ms records how late it comes.
 * Less often, it would miss short delays; more often, its own waking would show on a machine at rest.
 *
 * `perf_hooks.monitorEventLoopDelay` measures the same, but its values include its period, its `reset()` leaves out the
 * first delay after it, and it cannot report a delay when it happens.
 */
import { performance } from 'node:perf_hooks'
import { RateLimited } from '../base/rate-limited.ts'
import { Histogram } from './histogram.ts'

/** When a delay of the event loop is reported, and to whom. */
export interface EventLoopOptions {
  /** The delay in milliseconds from which on it is reported; 250 unless given. */
  readonly boundMs?: number
  /** Takes the line about such a delay, at most one in 10 seconds. */
  readonly warn?: (message: string) => void
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
}

/** The measurements of the event loop. */
export type EventLoopWatch = ReturnType<typeof createEventLoopWatch>

const everyMs = 50
const warnEveryMs = 10_000

/** Begins to watch the event loop of this process. It does not keep the process alive. */
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
    if (delayMs >= boundMs) warnings.say(`the event loop was held up for ${Math.round(delayMs)} ms`)
  }

  const timer = setInterval(tick, everyMs).unref()
  return {
    /** How late the timer came. */
    delay,
    /** Seconds since the process started in which the loop did not wait. */
    get activeSeconds(): number {
      return performance.eventLoopUtilization().active / 1000
    },
    /** Seconds since the process started in which it waited. */
    get idleSeconds(): number {
      return performance.eventLoopUtilization().idle / 1000
    },
    close: (): void => clearInterval(timer),
  }
}
