/**
 * A queue: each event goes to one client, the first that waits, and is kept until one asks.
 *
 * Surprise: an event is taken from the broker only when somebody is there for it, and is put back when that client has
 * left meanwhile. A poll whose answer would lie behind another one on its connection is passed over until its turn
 * comes: what it got could be lost without having been on the wire.
 */
import { ParkedReply } from '../pool/parked.ts'
import type { StreamReply } from '../http/reply.ts'
import { after, type MaybePromise } from '../maybe-promise.ts'
import type { QueueEvent, SourceLimits, Unsubscribe } from './broker.ts'
import { textOf, type SourceParts } from './source.ts'
import { WaitList } from './wait-list.ts'

/** What waits for an event of a queue. */
export abstract class QueueWaiter extends ParkedReply {
  /** The answer with an event. */
  abstract answerWith(event: QueueEvent): StreamReply
  /** Ends the wait with an event. False when it was over or its client has left: the event goes to the next. */
  abstract deliver(event: QueueEvent): boolean
}

export class Queue {
  readonly name: string
  readonly limits: SourceLimits
  readonly #parts: SourceParts
  readonly #waiting = new WaitList<QueueWaiter>()
  /** Whether the broker's subscription stands, or the promise of it. */
  #listening: boolean | Promise<void> = false
  #unsubscribe: Unsubscribe | undefined = undefined
  /** Whether there may be an event: the last `take` found one, or one was heard of since. */
  #mayHave = true
  #scheduled = false
  #handingOut = false

  /** Made by `events.ts`. */
  constructor(name: string, limits: SourceLimits, parts: SourceParts) {
    this.name = name
    this.limits = limits
    this.#parts = parts
  }

  /**
   * Appends a JSON value. It goes to the client that has waited longest, or waits for one.
   * @returns nothing with the local broker, a promise of it with one elsewhere
   * @throws TypeError for what JSON cannot hold
   */
  push(value: unknown): MaybePromise<void> {
    const text = textOf(`queue "${this.name}"`, value)
    return after(this.#parts.broker.push(this.name, text, this.limits), () => {
      this.#parts.counts.published += 1
    })
  }

  // ---- for polls ----

  /** The answer with an event that is there already; undefined: there is none, or others came first. */
  takeFor(waiter: QueueWaiter): MaybePromise<StreamReply | undefined> {
    if (!this.#waiting.isEmpty || !isReachable(waiter)) return undefined
    return after(this.#take(), (event) => {
      if (event === undefined) return undefined
      if (waiter.isOver || !isReachable(waiter)) return after(this.#putBack(event), () => undefined)
      this.#parts.counts.delivered += 1
      return waiter.answerWith(event)
    })
  }

  /** Lets a poll wait. */
  join(waiter: QueueWaiter): void {
    this.#waiting.add(waiter)
    if (waiter.ctx.response.socket === null) waiter.ctx.response.once('socket', () => this.#schedule())
    if (this.#listening === true) {
      if (this.#mayHave) this.#schedule()
      return
    }
    this.#listen().catch((error: unknown) => this.#report(error))
  }

  /** A poll waits no longer. */
  leave(waiter: QueueWaiter): void {
    this.#waiting.remove(waiter)
  }

  /** Whether nobody waits. */
  get isIdle(): boolean {
    return this.#waiting.isEmpty && !this.#handingOut
  }

  /** Ends the broker's subscription; the next who waits begins it anew. */
  rest(): void {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#listening = false
  }

  async #listen(): Promise<void> {
    this.#listening ||= this.#subscribe()
    await this.#listening
    this.#mayHave = true
    this.#schedule()
  }

  async #subscribe(): Promise<void> {
    try {
      const subscribed = this.#parts.broker.onAvailable(this.name, () => {
        this.#mayHave = true
        this.#schedule()
      })
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
      while (this.#mayHave && this.#first() !== undefined) {
        const event = await this.#take()
        if (event !== undefined && !this.#handToFirst(event)) await this.#putBack(event)
      }
    } catch (error) {
      this.#report(error)
    } finally {
      this.#handingOut = false
    }
  }

  #handToFirst(event: QueueEvent): boolean {
    for (let waiter = this.#first(); waiter !== undefined; waiter = this.#first()) {
      this.#waiting.remove(waiter)
      if (!waiter.deliver(event)) continue
      this.#parts.counts.delivered += 1
      return true
    }
    return false
  }

  #first(): QueueWaiter | undefined {
    return this.#waiting.find(isReachable)
  }

  #take(): MaybePromise<QueueEvent | undefined> {
    this.#mayHave = false
    return after(this.#parts.broker.take(this.name), (event) => {
      if (event !== undefined) this.#mayHave = true
      return event
    })
  }

  #putBack(event: QueueEvent): MaybePromise<void> {
    return this.#parts.broker.putBack(this.name, event)
  }

  #report(error: unknown): void {
    this.#parts.report(`queue "${this.name}": its events could not be handed out`, error)
  }
}

/** Whether what is written to it now goes to its client. */
function isReachable(waiter: QueueWaiter): boolean {
  return !waiter.ctx.gone && waiter.ctx.response.socket !== null
}
