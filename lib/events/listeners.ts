/**
 * The functions of the server that listen to a channel.
 *
 * Surprise: what one of them throws, now or later, is nobody else's business: it is reported, and the others hear on.
 */
import type { ChannelEvent, Unsubscribe } from './broker.ts'

/** An event as a function of the server hears it. */
export interface HeardEvent {
  readonly id: number
  /** The published value, read back from JSON. All listeners share it: do not change it. */
  readonly data: unknown
}

interface Listener {
  readonly hear: (event: HeardEvent) => unknown
  /** The newest id when it came; it hears what is newer. */
  readonly since: number
}

export class Listeners {
  readonly #all = new Set<Listener>()
  readonly #onFailure: (error: unknown) => void

  /** @param onFailure told what a listener threw, or rejected with */
  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure
  }

  /** Whether there are none. */
  get isEmpty(): boolean {
    return this.#all.size === 0
  }

  /**
   * Adds one.
   * @param since the id after which it hears
   * @returns what ends it
   */
  add(hear: (event: HeardEvent) => unknown, since: number): Unsubscribe {
    const own = { hear, since }
    this.#all.add(own)
    return () => void this.#all.delete(own)
  }

  /** Lets go of all. */
  clear(): void {
    this.#all.clear()
  }

  /** Tells events, the oldest first. Each is read from JSON once. */
  tell(events: readonly ChannelEvent[]): void {
    if (this.isEmpty) return
    for (const { id, text } of events) {
      const event = { id, data: JSON.parse(text) as unknown }
      for (const { hear, since } of this.#all) if (id > since) this.#tell(hear, event)
    }
  }

  #tell(hear: (event: HeardEvent) => unknown, event: HeardEvent): void {
    try {
      const outcome = hear(event)
      if (outcome instanceof Promise) outcome.catch(this.#onFailure)
    } catch (error) {
      this.#onFailure(error)
    }
  }
}
