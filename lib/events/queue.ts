/**
 * A queue: each event goes to one client, the first that waits, and is kept until one asks.
 *
 * Surprise: an event is taken from the broker only when somebody is there for it, and is put back when that client has
 * left meanwhile. A poll whose answer would lie behind another one on its connection is passed over until its turn
 * comes: what it got could be lost without having been on the wire. One event is taken first; where it says that there
 * are more, as many as wait are taken at once, since a broker may be far away.
 */
import { ParkedReply } from '../http/parked.ts'
import type { StreamReply } from '../http/reply.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { QueueEvent, SourceLimits, Unsubscribe } from './broker.ts'
import { retryMs, textOf, type SourceParts } from './source.ts'
import { WaitList } from './wait-list.ts'

/** What waits for an event of a queue. */
export abstract class QueueWaiter extends ParkedReply {
  /** The answer with an event. */
  abstract answerWith(event: QueueEvent): StreamReply
  /** Ends the wait with an event. False when it was over or its client has left: the event goes to the next. */
  abstract deliver(event: QueueEvent): boolean
  /** The broker is cut off: its wait ends, as at the end of its time. */
  abstract cutOff(): void
}

/** The most events that are taken at once. */
const mostAtOnce = 64

export class Queue {
  readonly name: string
  readonly limits: SourceLimits
  readonly #parts: SourceParts
  readonly #waiting = new WaitList<QueueWaiter>()
  /** Whether the broker's subscription stands, or the promise of it. */
  #listening: boolean | Promise<void> = false
  #unsubscribe: Unsubscribe | undefined = undefined
  /** How many events there may be: as many as the last `take` left, and at least one where one was heard of since. */
  #known = 1
  #scheduled = false
  #handingOut = false
  /** Set while those who wait do so for another attempt. */
  #retry: NodeJS.Timeout | undefined = undefined

  /** Made by `events.ts`. */
  constructor(name: string, limits: SourceLimits, parts: SourceParts) {
    this.name = name
    this.limits = limits
    this.#parts = parts
  }

  /**
   * Appends a JSON value. It goes to the client that has waited longest, or waits for one.
   * @returns nothing with the local broker, a promise of it with one elsewhere. That it rejects is logged, so nobody
   *   has to wait for it
   * @throws TypeError for what JSON cannot hold
   */
  push(value: unknown): MaybePromise<void> {
    const text = textOf(`queue "${this.name}"`, value)
    const pushed = after(this.#parts.broker.push(this.name, text, this.limits), () => {
      this.#parts.counts.published += 1
    })
    return this.#parts.noting(`queue "${this.name}": an event was not pushed`, pushed)
  }

  // ---- for polls ----

  /** The answer with an event that is there already; undefined: there is none, or others came first. */
  takeFor(waiter: QueueWaiter): MaybePromise<StreamReply | undefined> {
    if (this.#parts.cutOff !== undefined) throw this.#parts.cutOff
    if (!this.#waiting.isEmpty || !isReachable(waiter)) return undefined
    this.#known = 0
    return after(this.#parts.broker.take(this.name), (event) => {
      if (event === undefined) return undefined
      this.#known = Math.max(this.#known, event.left)
      if (waiter.isOver || !isReachable(waiter)) return after(this.#putBack(event), () => undefined)
      this.#handedOut(event)
      return waiter.answerWith(event)
    })
  }

  /** Lets a poll wait. */
  join(waiter: QueueWaiter): void {
    if (this.#parts.cutOff !== undefined) return waiter.cutOff()
    this.#waiting.add(waiter)
    if (waiter.ctx.response.socket === null) waiter.ctx.response.once('socket', () => this.#schedule())
    if (this.#listening !== true) this.#listenOn()
    else if (this.#known > 0) this.#schedule()
  }

  /** A poll waits no longer. */
  leave(waiter: QueueWaiter): void {
    this.#waiting.remove(waiter)
  }

  /** The broker is cut off: all waits end. */
  cutOff(): void {
    for (const waiter of this.#waiting.all()) waiter.cutOff()
  }

  /** Whether nobody waits. */
  get isIdle(): boolean {
    return this.#waiting.isEmpty && !this.#handingOut
  }

  /** Ends the broker's subscription; the next who waits begins it anew. */
  rest(): void {
    clearTimeout(this.#retry)
    this.#retry = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#listening = false
  }

  /** Lets go of everything. */
  close(): void {
    this.rest()
  }

  async #listen(): Promise<void> {
    this.#listening ||= this.#subscribe()
    await this.#listening
    this.#heardOf()
  }

  #listenOn(): void {
    this.#listen().catch((error: unknown) => this.#tryLater(error))
  }

  #heardOf(): void {
    this.#known = Math.max(this.#known, 1)
    this.#schedule()
  }

  /** Those who wait go on waiting. */
  #tryLater(error: unknown): void {
    this.#parts.report(`queue "${this.name}": its events could not be handed out`, error)
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      if (!this.#waiting.isEmpty) this.#listenOn()
    }, retryMs).unref()
  }

  async #subscribe(): Promise<void> {
    try {
      const subscribed = this.#parts.broker.onAvailable(this.name, () => this.#heardOf())
      this.#unsubscribe = subscribed instanceof Promise ? await subscribed : subscribed
      this.#listening = true
    } catch (error) {
      this.rest()
      throw error
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.isEmpty) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      if (!this.#handingOut) void this.#handOut()
    })
  }

  async #handOut(): Promise<void> {
    this.#handingOut = true
    try {
      for (let count = this.#countReachable(); count > 0; count = this.#countReachable()) await this.#handOutSome(count)
    } catch (error) {
      this.#tryLater(error)
    } finally {
      this.#handingOut = false
    }
  }

  /** Takes so many at once. Those that nobody is there for any more go back, the last one first. */
  async #handOutSome(count: number): Promise<void> {
    this.#known = 0
    const { broker } = this.#parts
    const outcomes = await Promise.allSettled(Array.from({ length: count }, async () => broker.take(this.name)))
    const taken = outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : undefined))
    this.#known = Math.max(this.#known, taken.at(-1)?.left ?? 0)
    const unwanted = taken.filter((event) => event !== undefined && !this.#handToFirst(event)).reverse() as QueueEvent[]
    const returned = await Promise.allSettled(unwanted.map(async (event) => this.#putBack(event)))
    const failed = [...outcomes, ...returned].find((outcome) => outcome.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }

  /** How many wait for what there may be. */
  #countReachable(): number {
    const most = Math.min(this.#known, mostAtOnce)
    let count = 0
    if (most > 0) this.#waiting.find((waiter) => isReachable(waiter) && ++count === most)
    return count
  }

  #handToFirst(event: QueueEvent): boolean {
    for (let waiter = this.#first(); waiter !== undefined; waiter = this.#first()) {
      this.#waiting.remove(waiter)
      if (!waiter.deliver(event)) continue
      this.#handedOut(event)
      return true
    }
    return false
  }

  #first(): QueueWaiter | undefined {
    return this.#waiting.find(isReachable)
  }

  #handedOut(event: QueueEvent): void {
    this.#parts.counts.delivered += 1
    this.#parts.broker.handedOut(this.name, event)
  }

  #putBack(event: QueueEvent): MaybePromise<void> {
    return this.#parts.broker.putBack(this.name, event)
  }
}

/** Whether what is written to it now goes to its client. */
function isReachable(waiter: QueueWaiter): boolean {
  return !waiter.ctx.gone && waiter.ctx.response.socket !== null
}
