/**
 * A queue: each event goes to one client, the first that waits, and is kept until a client asks.
 *
 * An event is taken from the broker only when a client can get it, and is put back when that client has disconnected in
 * the meantime. A pipelined poll, whose answer has to wait for an earlier one on its connection, is skipped until its
 * turn comes: its event could be lost before it is sent. The first attempt takes one event; when it says that more are
 * left, as many events as clients wait are taken at once, since the broker may be on another machine.
 */
import { ParkedReply } from '../http/parked.ts'
import type { StreamReply } from '../http/reply.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { QueueEvent, Unsubscribe } from './broker.ts'
import { Source, textOf } from './source.ts'

/** A poll that waits for an event of a queue. */
export abstract class QueueWaiter extends ParkedReply {
  /** Returns the reply for an event. */
  abstract answerWith(event: QueueEvent): StreamReply
  /** Ends the wait with an event. Returns false when it is over or its client has disconnected: try the next one. */
  abstract deliver(event: QueueEvent): boolean
  /** Ends the wait as a time-out does, since the broker is cut off. */
  abstract cutOff(): void
}

/** The most events that are taken at once. */
const maxAtOnce = 64

/** A queue. Opened with `ctx.queue(name)`. */
export class Queue extends Source {
  /** The one that has waited longest is first. */
  readonly #waiting = new Set<QueueWaiter>()
  /** The events that the broker may have: as many as the last `take` left, at least one after each announcement. */
  #available = 1
  #scheduled = false
  #handingOut = false

  /**
   * Appends a JSON value. It goes to the client that has waited longest, or is kept for the next one.
   * @returns nothing with the local broker, a promise with others. A rejection is logged, so the caller need not wait
   *   for it
   * @throws TypeError for values that JSON cannot hold
   */
  push(value: unknown): MaybePromise<void> {
    const { broker, counts, logRejection } = this.services
    const text = textOf(`queue "${this.name}"`, value)
    const pushed = after(broker.push(this.name, text, this.limits), () => {
      counts.published += 1
    })
    return logRejection(`queue "${this.name}": an event was not pushed`, pushed)
  }

  // ---- for polls ----

  /** Returns the reply with an event that is there already; undefined when there is none or other polls came first. */
  takeFor(waiter: QueueWaiter): MaybePromise<StreamReply | undefined> {
    this.checkReach()
    if (this.#waiting.size > 0 || !isReachable(waiter)) return undefined
    this.#available = 0
    return after(this.services.broker.take(this.name), (event) => {
      if (event === undefined) return undefined
      this.#available = Math.max(this.#available, event.left)
      if (waiter.isOver || !isReachable(waiter)) return after(this.#putBack(event), () => undefined)
      this.#handedOut(event)
      return waiter.answerWith(event)
    })
  }

  /** Adds a poll; `deliver` is called when there is an event for it. */
  join(waiter: QueueWaiter): void {
    if (this.services.cutOff !== undefined) return waiter.cutOff()
    this.#waiting.add(waiter)
    if (waiter.ctx.response.socket === null) waiter.ctx.response.once('socket', () => this.#schedule())
    if (!this.isListening) this.listenInBackground()
    else if (this.#available > 0) this.#schedule()
  }

  /** Removes a poll. */
  leave(waiter: QueueWaiter): void {
    this.#waiting.delete(waiter)
  }

  cutOff(): void {
    for (const waiter of [...this.#waiting]) waiter.cutOff()
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0 && !this.#handingOut
  }

  override async listen(): Promise<void> {
    await super.listen()
    this.#onAvailable()
  }

  protected subscribeToBroker(): MaybePromise<Unsubscribe> {
    return this.services.broker.onAvailable(this.name, () => this.#onAvailable())
  }

  protected onSubscribed(): void {}

  protected get failureMessage(): string {
    return `queue "${this.name}": its events could not be handed out`
  }

  #onAvailable(): void {
    this.#available = Math.max(this.#available, 1)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.size === 0) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (!this.#handingOut) void this.#handOut()
    })
  }

  async #handOut(): Promise<void> {
    this.#handingOut = true
    try {
      for (let count = this.#countToTake(); count > 0; count = this.#countToTake()) await this.#takeAndDeliver(count)
    } catch (error) {
      this.retryLater(error)
    } finally {
      this.#handingOut = false
    }
  }

  /** Takes `count` events at once. Events that no client is left for go back, the last one first. */
  async #takeAndDeliver(count: number): Promise<void> {
    this.#available = 0
    const { broker } = this.services
    const outcomes = await Promise.allSettled(Array.from({ length: count }, async () => broker.take(this.name)))
    const taken = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined))
    this.#available = Math.max(this.#available, taken.at(-1)?.left ?? 0)
    const waiters = this.#waiting.values() // Each event goes on with it where the one before stopped.
    const isUnwanted = (event: QueueEvent | undefined) => event !== undefined && !this.#deliver(event, waiters)
    const unwanted = taken.filter(isUnwanted).reverse() as QueueEvent[]
    const returned = await Promise.allSettled(unwanted.map(async (event) => this.#putBack(event)))
    const failed = [...outcomes, ...returned].find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  /** The number of polls that can be answered now, at most as many as there may be events. */
  #countToTake(): number {
    const most = Math.min(this.#available, maxAtOnce)
    let count = 0
    if (most > 0) for (const waiter of this.#waiting) if (isReachable(waiter) && ++count === most) break
    return count
  }

  /** Delivers an event to the next poll that takes it. Returns false when none does. */
  #deliver(event: QueueEvent, waiters: Iterable<QueueWaiter>): boolean {
    for (const waiter of waiters) {
      if (!isReachable(waiter)) continue
      this.#waiting.delete(waiter)
      if (!waiter.deliver(event)) continue
      this.#handedOut(event)
      return true
    }
    return false
  }

  #handedOut(event: QueueEvent): void {
    this.services.counts.delivered += 1
    this.services.broker.handedOut(this.name, event)
  }

  #putBack(event: QueueEvent): MaybePromise<void> {
    return this.services.broker.putBack(this.name, event)
  }
}

/** Whether an answer that is written now is sent now: connected, and first on its connection. */
function isReachable(waiter: QueueWaiter): boolean {
  return !waiter.ctx.gone && waiter.ctx.response.socket !== null
}
