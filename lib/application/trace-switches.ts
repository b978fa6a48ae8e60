/**
 * The trace switches of one process, as the desired state sets them. A switch with a time goes back by itself in each
 * process, since the process that set it may have ended by then.
 */
import type { Trace } from '../log/trace.ts'
import { switchAt, type StateContent, type TraceEntry } from './desired-state.ts'

interface TraceSwitchesOptions {
  /** The switches, as the configuration sets them. */
  readonly trace: Trace
  /** Milliseconds since 1970 by the clock of the state. */
  readonly nowMs: () => number
  /** Called when a switch has gone back by itself. */
  readonly onReturn?: ((module: string, on: boolean) => void) | undefined
}

/** The longest timer, in milliseconds. */
const longestMs = 2 ** 31 - 1

/** A switch that goes back by itself. */
interface Pending {
  /** The time in the state. */
  readonly until: number
  readonly timer: NodeJS.Timeout
}

/** Sets the switches. */
export class TraceSwitches {
  readonly #options: TraceSwitchesOptions
  readonly #configured: Readonly<Record<string, boolean>>
  readonly #pending = new Map<string, Pending>()

  constructor(options: TraceSwitchesOptions) {
    this.#options = options
    this.#configured = options.trace.state()
  }

  /** Sets every switch as a state says. */
  apply(entries: StateContent['trace']): void {
    const now = this.#options.nowMs()
    for (const module of Object.keys(this.#configured)) {
      const entry = entries[module]
      this.#set(module, entry, now)
      if (entry?.until === this.#pending.get(module)?.until) continue
      clearTimeout(this.#pending.get(module)?.timer)
      this.#pending.delete(module)
      if (entry?.until !== undefined && entry.until > now) this.#return(module, entry, entry.until, now)
    }
  }

  /** Stops all timers. */
  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer)
    this.#pending.clear()
  }

  #set(module: string, entry: TraceEntry | undefined, now: number): boolean {
    const on = (entry && switchAt(entry, now)) ?? this.#configured[module] ?? true
    this.#options.trace.set(module, on)
    return on
  }

  #return(module: string, entry: TraceEntry, until: number, now: number): void {
    const timer = setTimeout(() => {
      this.#pending.delete(module)
      this.#options.onReturn?.(module, this.#set(module, entry, until))
    }, Math.min(until - now, longestMs))
    timer.unref()
    this.#pending.set(module, { until, timer })
  }
}
