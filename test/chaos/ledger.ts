/**
 * What was published, pushed and counted, and what arrived: it throws where something is lost, doubled or out of order.
 *
 * Surprise: what was sent and not acknowledged may have been done. It may arrive, but then for everybody and once.
 */

/** An event as a client got it. */
export interface Arrived {
  readonly id: number
  /** What the publisher called it. */
  readonly data: string
}

/** The ledger of a channel. All clients begin at the same id. */
export class ChannelLedger {
  /** Each name that was sent; no name is sent twice. */
  readonly #sent = new Set<string>()
  /** Names of acknowledged events by id. */
  readonly #acknowledged = new Map<number, string>()
  /** The events in the order in which the client that is ahead got them. */
  readonly #order: Arrived[] = []
  /** How many of them each client has. */
  readonly #seen: number[]

  constructor(clients: number) {
    this.#seen = new Array<number>(clients).fill(0)
  }

  send(name: string): void {
    this.#sent.add(name)
  }

  acknowledge(id: number, name: string): void {
    const before = this.#acknowledged.get(id)
    if (before !== undefined) throw new Error(`The id ${id} was given to ${before} and to ${name}`)
    this.#acknowledged.set(id, name)
  }

  /** Takes what a client got with one answer. */
  arrive(client: number, events: readonly Arrived[]): void {
    for (const { id, data } of events) {
      const at = this.#seen[client] ?? 0
      const expected = this.#order[at]
      if (expected === undefined) this.#append(client, { id, data })
      else if (expected.id !== id || expected.data !== data) {
        throw new Error(`Client ${client} got ${data} as ${id} where others got ${expected.data} as ${expected.id}`)
      }
      this.#seen[client] = at + 1
    }
  }

  #append(client: number, event: Arrived): void {
    const { id, data } = event
    const last = this.#order.at(-1)
    if (last !== undefined && id <= last.id) throw new Error(`Client ${client} got id ${id} behind ${last.id}`)
    if (!this.#sent.has(data)) throw new Error(`Client ${client} got ${data}, which nobody published, or which came before`)
    this.#sent.delete(data)
    this.#order.push(event)
  }

  get acknowledged(): number {
    return this.#acknowledged.size
  }

  /** Events that arrived though nobody was told that they had been published. */
  get unacknowledged(): number {
    return this.#order.filter(({ id }) => !this.#acknowledged.has(id)).length
  }

  /** How many events have arrived, and at the client that is furthest behind. */
  get arrived(): { readonly most: number; readonly least: number } {
    return { most: this.#order.length, least: Math.min(...this.#seen) }
  }

  /** Whether a client has the newest acknowledged event. */
  hasAll(client: number): boolean {
    const last = this.#order[(this.#seen[client] ?? 0) - 1]
    return last !== undefined && last.id >= this.newest
  }

  get newest(): number {
    let newest = 0
    for (const id of this.#acknowledged.keys()) newest = Math.max(newest, id)
    return newest
  }

  /** To be called when every client has all. */
  settle(): void {
    const arrived = new Map(this.#order.map(({ id, data }) => [id, data]))
    for (const [id, name] of this.#acknowledged) {
      if (arrived.get(id) !== name) throw new Error(`${name} was acknowledged as ${id}: nobody got it, but ${arrived.get(id)}`)
    }
  }
}

/** The ledger of a queue. */
export class QueueLedger {
  readonly #sent = new Set<string>()
  readonly #acknowledged = new Set<string>()
  readonly #taken = new Set<string>()

  send(name: string): void {
    this.#sent.add(name)
  }

  acknowledge(name: string): void {
    this.#acknowledged.add(name)
  }

  take(name: string): void {
    if (!this.#sent.has(name)) throw new Error(`${name} was taken, and nobody pushed it`)
    if (this.#taken.has(name)) throw new Error(`${name} was taken twice`)
    this.#taken.add(name)
  }

  get acknowledged(): number {
    return this.#acknowledged.size
  }

  /** Acknowledged events that nobody has got. */
  get missing(): number {
    return [...this.#acknowledged].filter((name) => !this.#taken.has(name)).length
  }
}
