/**
 * The heartbeat of streams: a comment line now and then, so that proxies do not take a quiet stream for a dead one and
 * the server hears of clients that are gone. One interval for all, and none while there is no stream.
 */

/** What has streams. */
export interface Beating {
  /** Sends each of them a comment. */
  beat(): void
}

export class Heartbeat {
  readonly #intervalMs: number
  readonly #members = new Set<Beating>()
  #timer: NodeJS.Timeout | undefined = undefined

  /** @param intervalMs from 1 */
  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** Whether the interval runs. */
  get running(): boolean {
    return this.#timer !== undefined
  }

  /** Adds what has its first stream now; what is there already stays once. */
  add(member: Beating): void {
    this.#members.add(member)
    this.#timer ??= setInterval(() => {
      for (const one of this.#members) one.beat()
    }, this.#intervalMs).unref()
  }

  /** Removes what has lost its last stream. */
  remove(member: Beating): void {
    this.#members.delete(member)
    if (this.#members.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
