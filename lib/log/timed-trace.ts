/**
 * Trace switches that may go back by themselves: whoever looks for something switches a module on for ten minutes, and
 * the log does not fill when they forget it.
 *
 * Surprise: a second setting with a time does not move the goal: the switch goes back to where it was before the first.
 */
import { traceModules, type Trace } from './trace.ts'

interface Pending {
  readonly timer: NodeJS.Timeout
  readonly backTo: boolean
}

/** Sets the switches of one log. */
export class TimedTrace {
  readonly #trace: Trace
  readonly #onReturn: (module: string, enabled: boolean) => void
  readonly #pending = new Map<string, Pending>()

  /** @param onReturn told when a switch went back by itself */
  constructor(trace: Trace, onReturn: (module: string, enabled: boolean) => void) {
    this.#trace = trace
    this.#onReturn = onReturn
  }

  /**
   * Sets a switch, or all of them.
   * @param module one of the trace modules, or `all`
   * @param ttlSeconds how long, 1 and up; without it for good
   * @returns the state of all switches
   * @throws RangeError for an unknown module, which names the known ones
   */
  set(module: string, enabled: boolean, ttlSeconds?: number): Record<string, boolean> {
    const before = this.#trace.state()
    this.#trace.set(module, enabled)
    for (const name of module === 'all' ? traceModules : [module]) {
      const pending = this.#pending.get(name)
      clearTimeout(pending?.timer)
      this.#pending.delete(name)
      if (ttlSeconds !== undefined) this.#returnLater(name, pending?.backTo ?? before[name] ?? true, ttlSeconds)
    }
    return this.#trace.state()
  }

  /** Forgets what is to go back. */
  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer)
    this.#pending.clear()
  }

  #returnLater(module: string, backTo: boolean, ttlSeconds: number): void {
    const timer = setTimeout(() => {
      this.#pending.delete(module)
      this.#trace.set(module, backTo)
      this.#onReturn(module, backTo)
    }, ttlSeconds * 1000)
    timer.unref()
    this.#pending.set(module, { timer, backTo })
  }
}
