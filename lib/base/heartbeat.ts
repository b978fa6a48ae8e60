/**
 * A heartbeat: one interval for all that need one, which runs as long as there are any. It keeps no process alive.
 *
 * Surprise: time is counted in beats, not read from a clock. A process that stood still, or a machine that slept,
 * counts one beat for all of it, so that nobody is cut for bytes that only this process had no time to read.
 */

/** What a heartbeat looks after. */
export interface Beating {
  /** Called at every beat, with the number of beats so far. It may remove itself. */
  beat(now: number): void
}

export class Heartbeat<One extends Beating = Beating> {
  readonly #intervalMs: number
  readonly #all = new Set<One>()
  #timer: NodeJS.Timeout | undefined = undefined
  #now = 0

  /** @param intervalMs from 1 */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Beats so far. */
  get now(): number {
    return this.#now
  }

  /** How many it looks after. */
  get size(): number {
    return this.#all.size
  }

  /** Whether the interval runs. */
  get running(): boolean {
    return this.#timer !== undefined
  }

  /** Looks after one more; one that is there already stays once. */
  add(one: One): void {
    this.#all.add(one)
    this.#timer ??= setInterval(() => this.beat(), this.#intervalMs).unref()
  }

  /** Lets go of one; does nothing where it is not there. */
  remove(one: One): void {
    this.#all.delete(one)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Calls `tell` with each that it looks after. */
  forEach(tell: (one: One) => void): void {
    for (const one of this.#all) tell(one)
  }

  /** One beat: what the interval does. */
  beat(): void {
    this.#now += 1
    for (const one of this.#all) one.beat(this.#now)
  }
}
