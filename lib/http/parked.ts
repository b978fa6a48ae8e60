/**
 * A parked reply: what an action returns when the answer is not there yet. It says what is waited for, where, and how
 * long. The chain unwinds, the session is saved, the HTTP worker is free; then the REST pool holds the reply.
 *
 * Surprise: one object is the whole wait. It is the entry in the deadlines, in the queue of the pool and, by `previous`
 * and `next`, in the list of its source. There is no promise, no timer and no closure for each that waits.
 *
 * The order of calls: `ready`, then `waiting` and `started` (the second at once, or when a worker is free), then either
 * the reply's own `answer` or `fail`, or the pool's `ended`. Once it is over nothing more is called.
 */
import type { CoreContext } from './context.ts'
import type { ReadyReply, StreamReply } from './reply.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'

/** Whose workers it takes. */
export type ParkedKind = 'longpoll' | 'sse'

/**
 * Why a wait ended that did not end itself: its time is over, the client has left, the server stops. `head`: it never
 * waited, since the request is a HEAD.
 */
export type EndReason = 'deadline' | 'left' | 'stop' | 'head'

/** Where a wait stands. `asking`: `ready` has not answered yet. `queued` waits without a worker, `working` with one. */
export type ParkedState = 'made' | 'asking' | 'queued' | 'working' | 'over'

/** Who holds parked replies: the REST pool. */
export interface Parking {
  /** Ends a wait. False, and nothing happens, when it is over or its client is known to have left. */
  answer(parked: ParkedReply, reply: ReadyReply | undefined): boolean
  /** Ends a wait with an error. When it is over, the error is only logged. */
  fail(parked: ParkedReply, error: unknown): void
}

export abstract class ParkedReply {
  /** Whose workers it takes. Best a getter, so that it takes no memory. */
  abstract readonly kind: ParkedKind
  readonly ctx: CoreContext
  /** Milliseconds from the moment it waits, 0 and up; Infinity: as long as the pool allows. */
  readonly timeoutMs: number

  /** The pool's: where it stands. */
  state: ParkedState = 'made'
  /** The pool's: who holds it. */
  parking: Parking | undefined = undefined
  /** The pool's: when its time is over, by the clock of the deadlines; Infinity: never. */
  deadlineAt = Infinity
  /** The pool's: its place among the deadlines; -1: not there. */
  heapIndex = -1
  /** The source's: its neighbours among those that wait for the same. The pool does not look at them. */
  previous: ParkedReply | undefined = undefined
  next: ParkedReply | undefined = undefined

  constructor(ctx: CoreContext, timeoutMs: number) {
    this.ctx = ctx
    this.timeoutMs = timeoutMs
  }

  /**
   * The answer when it is there already; it needs no worker. Not called for HEAD. What it throws is the answer as well
   * (HttpError 400 for a bad cursor). When it is a promise and the client leaves meanwhile, `ended('left')` is called;
   * look at `isOver` before anything is taken for good, since what the promise then brings is thrown away.
   */
  abstract ready(): MaybePromise<ReadyReply | undefined>

  /** It waits from now on, with a worker or in the queue: register with the source. It may answer at once. */
  abstract waiting(): void

  /**
   * It has a worker. A stream returns how it begins: the header section is written with the context's fields, then
   * `send` is called, which does not end the response. Others return undefined.
   */
  abstract started(): StreamReply | undefined

  /**
   * The wait is over for a reason of the pool: unregister, where it was registered. Returns what to answer: the empty
   * answer; undefined when the client has left, or for a stream that had begun and has ended the response itself.
   */
  abstract ended(reason: EndReason): MaybePromise<ReadyReply | undefined>

  /** Whether no answer can be given any more: the wait is over, or its client is known to have left. */
  get isOver(): boolean {
    return this.state === 'over' || this.ctx.gone
  }

  /**
   * Ends the wait with an answer; undefined: a stream that has ended the response itself. Unregister before it.
   * @returns false when it was over, or the client is known to have left: then the event was not handed out, and goes
   *   to the next that waits. Of a client that has left `ended('left')` tells soon, if it has not yet
   */
  protected answer(reply: ReadyReply | undefined): boolean {
    return this.parking !== undefined && this.parking.answer(this, reply)
  }

  /** Ends the wait with an error: its status when it is an HttpError, else 500. Does nothing before it is parked. */
  protected fail(error: unknown): void {
    this.parking?.fail(this, error)
  }
}
