/** The leases of queue events in the brokers that keep them in one process, each with a timer. */
import { randomBytes } from 'node:crypto'

interface Lease<Held> {
  readonly queue: string
  readonly held: Held
  readonly timer: NodeJS.Timeout
}

/** Leases, each of a queue and of what the broker holds for it. */
export class Leases<Held> {
  readonly #leases = new Map<string, Lease<Held>>()
  readonly #onOver: (queue: string, held: Held) => void

  /** @param onOver called when the time of a lease is over; the lease has ended then */
  constructor(onOver: (queue: string, held: Held) => void) {
    this.#onOver = onOver
  }

  /**
   * Begins a lease.
   * @param lease its text, as {@link newLease} makes it
   * @param ms from 0
   */
  begin(lease: string, queue: string, held: Held, ms: number): void {
    const over = (): void => {
      this.#leases.delete(lease)
      this.#onOver(queue, held)
    }
    this.#leases.set(lease, { queue, held, timer: setTimeout(over, ms).unref() })
  }

  /** Returns what the broker holds for a lease of this queue; undefined if there is no such lease. */
  find(lease: string, queue: string): Held | undefined {
    const found = this.#leases.get(lease)
    return found?.queue === queue ? found.held : undefined
  }

  /** Ends a lease, if there is one. */
  end(lease: string): void {
    clearTimeout(this.#leases.get(lease)?.timer)
    this.#leases.delete(lease)
  }

  /** Returns each queue with what the broker holds for it, in the order in which the leases began. */
  all(): (readonly [queue: string, held: Held])[] {
    return [...this.#leases.values()].map(({ queue, held }) => [queue, held])
  }

  /** Forgets all leases. */
  close(): void {
    for (const { timer } of this.#leases.values()) clearTimeout(timer)
    this.#leases.clear()
  }
}

/** Returns the text of a new lease, which no client can guess: else it could end the lease of another. */
export function newLease(): string {
  return randomBytes(16).toString('base64url')
}
