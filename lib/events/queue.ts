/**
 * A queue: each event goes to one client, the one that has waited longest, or is kept until a client polls.
 *
 * An event is taken from the broker only when a client can get it, and is put back if that client disconnects in the
 * meantime. A pipelined poll, whose response has to wait for an earlier one on its connection, is skipped until its
 * turn comes: its event could be lost before it is sent.
 */
import { ParkedReply, type EndReason } from '../http/parked.ts'
import type { StreamReply } from '../http/reply.ts'
import type { CoreContext as Context } from '../http/context.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import type { LeaseEnd, QueueEvent, Unsubscribe } from './broker.ts'
import { jsonReply } from './event-encoder.ts'
import { Source, textOf } from './source.ts'

/** The form of the responses: `{ok: true, event}`, or `{type: 'event', data}` and `{type: 'idle'}`. */
type QueueForm = 'simple' | 'typed'

/** The empty responses. */
const emptyReplies = { simple: jsonReply('{"ok":true,"event":null}'), typed: jsonReply('{"type":"idle"}') }

/** A poll that waits for an event of a queue. */
export class QueuePoll extends ParkedReply {
  readonly #queue: Queue
  readonly #form: QueueForm
  /** The time of the lease that its client gets with an event; undefined: none. */
  readonly leaseMs: number | undefined

  constructor(ctx: Context, timeoutMs: number, queue: Queue, form: QueueForm, leaseMs: number | undefined) {
    super(ctx, timeoutMs)
    this.#queue = queue
    this.#form = form
    this.leaseMs = leaseMs
  }

  get kind() {
    return 'longpoll' as const
  }

  ready(): MaybePromise<StreamReply | undefined> {
    return this.#queue.takeFor(this)
  }

  waiting(): void {
    this.#queue.join(this)
  }

  started(): undefined {}

  ended(reason: EndReason): StreamReply | undefined {
    this.#queue.leave(this)
    return reason === 'left' ? undefined : emptyReplies[this.#form]
  }

  /** Returns the reply for an event. */
  answerWith({ text, lease }: QueueEvent): StreamReply {
    const event = this.#form === 'simple' ? `"ok":true,"event":${text}` : `"type":"event","data":${text}`
    return jsonReply(lease === undefined ? `{${event}}` : `{${event},"lease":"${lease}"}`)
  }

  /** Ends the wait with an event. Returns false if it is over or its client has disconnected: try the next one. */
  deliver(event: QueueEvent): boolean {
    return this.answer(this.answerWith(event))
  }

  /** Ends the wait as a timeout does, because the broker is cut off. */
  cutOff(): void {
    this.#queue.leave(this)
    this.answer(emptyReplies[this.#form])
  }
}

/** A queue. Opened with `ctx.queue(name)`. */
export class Queue extends Source {
  /** The longest waiting first. */
  readonly #waiting = new Set<QueuePoll>()
  /** Whether the broker may have events. */
  #mayHave = true
  #scheduled = false
  #handingOut = false

  /**
   * Appends a JSON value. It goes to the client that has waited longest, or is kept for the next poll.
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

  /**
   * Reports that the work of an event is done, so that no other client gets it.
   * @returns whether its lease was still valid, as a promise; false: another client gets the event, or has it
   * @throws TypeError for a lease that is not a string, as a rejection
   */
  async done(lease: string): Promise<boolean> {
    return this.#endLease(lease, 'done')
  }

  /** Gives an event back: the next client gets it. Returns and throws as `done` does. */
  async back(lease: string): Promise<boolean> {
    return this.#endLease(lease, 'back')
  }

  // ---- for polls ----

  /** Returns a reply with an available event; undefined if there is none or other polls came first. */
  takeFor(waiter: QueuePoll): MaybePromise<StreamReply | undefined> {
    this.checkReach()
    if (this.#waiting.size > 0 || !isReachable(waiter)) return undefined
    return after(this.#take(waiter.leaseMs), (event) => {
      if (event === undefined) return undefined
      if (waiter.isOver || !isReachable(waiter)) return after(this.#putBack(event), () => undefined)
      this.#handedOut(event)
      return waiter.answerWith(event)
    })
  }

  /** Adds a poll; `deliver` is called when there is an event for it. */
  join(waiter: QueuePoll): void {
    if (this.services.cutOff !== undefined) return waiter.cutOff()
    this.#waiting.add(waiter)
    if (waiter.ctx.response.socket === null) waiter.ctx.response.once('socket', () => this.#schedule())
    if (!this.isListening) this.listenInBackground()
    else if (this.#mayHave) this.#schedule()
  }

  /** Removes a poll. */
  leave(waiter: QueuePoll): void {
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
    this.#mayHave = true
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
      for (let first = this.#first(); this.#mayHave && first !== undefined; first = this.#first()) {
        await this.#takeAndDeliver(first.leaseMs)
      }
    } catch (error) {
      this.retryLater(error)
    } finally {
      this.#handingOut = false
    }
  }

  async #takeAndDeliver(leaseMs: number | undefined): Promise<void> {
    const event = await this.#take(leaseMs)
    if (event === undefined) return
    for (let waiter = this.#first(); waiter !== undefined && waiter.leaseMs === leaseMs; waiter = this.#first()) {
      this.#waiting.delete(waiter)
      if (waiter.deliver(event)) return this.#handedOut(event)
    }
    await this.#putBack(event) // No client is left, or the next one wants another lease.
  }

  /** Takes an event. An event announced in the meantime may be available afterwards. */
  #take(leaseMs: number | undefined): MaybePromise<QueueEvent | undefined> {
    this.#mayHave = false
    return after(this.services.broker.take(this.name, leaseMs), (event) => {
      if (event !== undefined && event.left > 0) this.#mayHave = true
      return event
    })
  }

  /** The longest waiting poll that can be answered now. */
  #first(): QueuePoll | undefined {
    for (const waiter of this.#waiting) if (isReachable(waiter)) return waiter
    return undefined
  }

  #handedOut(event: QueueEvent): void {
    this.services.counts.delivered += 1
    this.services.broker.handedOut(this.name, event)
  }

  #putBack(event: QueueEvent): MaybePromise<void> {
    return this.services.broker.putBack(this.name, event)
  }

  #endLease(lease: unknown, end: LeaseEnd): MaybePromise<boolean> {
    if (typeof lease !== 'string') {
      throw new TypeError(`A lease of queue "${this.name}" must be a string: it is of type ${typeof lease}`)
    }
    return this.services.broker.endLease(this.name, lease, end)
  }
}

/** Whether a response written now is sent now: connected, and first on its connection. */
function isReachable(waiter: QueuePoll): boolean {
  return !waiter.ctx.gone && waiter.ctx.response.socket !== null
}
