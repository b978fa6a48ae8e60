/**
 * Sets trace switches back when their time is over, on this node by itself: whoever set them may be gone by then.
 */
import { traceOf, tracedModules, valueOf, type State, type TraceEntry } from './state.ts'

/** The longest that a timer may run, in milliseconds; longer than any switch may. */
const longestMs = 2 ** 31 - 1

interface Pending {
  /** What the state says. */
  readonly until: number
  readonly timer: NodeJS.Timeout
}

export class TraceEnds {
  readonly #onEnd: (module: string, enabled: boolean | undefined) => void
  readonly #pending = new Map<string, Pending>()

  /** @param onEnd told what a switch goes back to; undefined: as the configuration has it */
  constructor(onEnd: (module: string, enabled: boolean | undefined) => void) {
    this.#onEnd = onEnd
  }

  /**
   * Goes by another state. A switch whose time was over before it was first seen is left alone.
   * @param nowMs the engine's time
   */
  follow(state: State, nowMs: number): void {
    const entries = new Map(tracedModules(state).map((module) => [module, traceOf(state, module)]))
    for (const [module, { until, timer }] of this.#pending) {
      if (entries.get(module)?.until === until) continue
      clearTimeout(timer)
      this.#pending.delete(module)
    }
    for (const [module, entry] of entries) {
      const until = entry?.until
      if (until !== undefined && until > nowMs && !this.#pending.has(module)) this.#wait(module, entry as TraceEntry, until - nowMs)
    }
  }

  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer)
    this.#pending.clear()
  }

  #wait(module: string, entry: TraceEntry, ms: number): void {
    const until = entry.until as number // It has one, or nothing would be waited for.
    const timer = setTimeout(() => {
      this.#pending.delete(module)
      this.#onEnd(module, valueOf(entry, until))
    }, Math.min(ms, longestMs))
    timer.unref()
    this.#pending.set(module, { until, timer })
  }
}
