/**
 * The trace switches of one process, as set by the desired state. A switch with a duration reverts in each process on
 * its own, since the process that set it may have ended by then.
 */
import type { Trace } from '../log/trace.ts'
import { switchAt, type StateContent } from './desired-state.ts'

interface TraceSwitchesOptions {
  /** The switches, as the configuration sets them. */
  readonly trace: Trace
  /** Milliseconds since 1970 by the clock of the state. */
  readonly nowMs: () => number
  /** Called for each switch that changed by reverting. */
  readonly onReturn: (module: string, on: boolean) => void
}

/** The longest timer, in milliseconds. */
const longestMs = 2 ** 31 - 1

/** Sets the switches. */
export class TraceSwitches {
  readonly #options: TraceSwitchesOptions
  readonly #configured: Readonly<Record<string, boolean>>
  /** Fires when the next switch reverts. */
  #timer: NodeJS.Timeout | undefined

  constructor(options: TraceSwitchesOptions) {
    this.#options = options
    this.#configured = options.trace.state()
  }

  /** Sets every switch as the state specifies. */
  apply(entries: StateContent['trace']): void {
    this.#apply(entries, this.#options.nowMs())
  }

  /** Stops the timer. */
  close(): void {
    clearTimeout(this.#timer)
  }

  #apply(entries: StateContent['trace'], now: number): void {
    for (const [module, configured] of Object.entries(this.#configured)) {
      const entry = entries[module]
      this.#options.trace.set(module, (entry && switchAt(entry, now)) ?? configured)
    }
    const next = Math.min(...Object.values(entries).flatMap(({ until = 0 }) => (until > now ? [until] : [])))
    clearTimeout(this.#timer)
    if (next === Infinity) return
    const waitMs = Math.min(next - now, longestMs)
    this.#timer = setTimeout(() => this.#revert(entries, now + waitMs), waitMs).unref()
  }

  /** @param due when the timer was due: it may fire slightly early */
  #revert(entries: StateContent['trace'], due: number): void {
    const { trace, nowMs, onReturn } = this.#options
    const before = trace.state()
    this.#apply(entries, Math.max(due, nowMs()))
    for (const [module, on] of Object.entries(trace.state())) if (on !== before[module]) onReturn(module, on)
  }
}
