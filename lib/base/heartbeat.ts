/**
 * A heartbeat: one interval that calls many members. It runs while there is a member, and keeps no process alive.
 *
 * Time is counted in beats, not read from a clock: a process that was stopped, or a machine that slept, counts one beat
 * for all of that time, so that no connection is cut for bytes that only this process had no time to read.
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

  /** Whether the interval runs. */
  get running(): boolean {
    return this.#timer !== undefined
  }

  /** Adds a member; adding it again changes nothing. */
  add(one: One): void {
    this.#all.add(one)
    this.#timer ??= setInterval(() => this.beat(), this.#intervalMs).unref()
  }

  /** Removes a member, if it is one. */
  remove(one: One): void {
    this.#all.delete(one)
    if (this.#all.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** One beat, as the interval makes it. */
  beat(): void {
    this.#now += 1
    for (const one of this.#all) one.beat(this.#now)
  }
}
