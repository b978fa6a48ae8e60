/**
 * A heartbeat: one interval that calls many members. It runs while there are members, and does not keep the process
 * alive.
 *
 * Time is counted in beats, not read from a clock: after a suspended process or a sleeping machine, all of that time
 * counts as one beat, so that no connection is cut for bytes that only this process had no time to read.
 */

/** A member of a heartbeat. */
export interface Beating {
  /** Called at every beat, with the number of beats so far. It may remove itself. */
  beat(now: number): void
}

/** An interval with its members. */
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

  /** The number of members. */
  get size(): number {
    return this.#all.size
  }

  /** Whether the interval is running. */
  get running(): boolean {
    return this.#timer !== undefined
  }

  /** Adds a member; adding it again has no effect. */
  add(one: One): void {
    this.#all.add(one)
    this.#timer ??= setInterval(() => this.beat(), this.#intervalMs).unref()
  }

  /** Removes a member, if present. */
  remove(one: One): void {
    this.#all.delete(one)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Performs one beat, as the interval does. */
  beat(): void {
    this.#now += 1
    for (const one of this.#all) one.beat(this.#now)
  }
}
