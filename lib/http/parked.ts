/**
 * A parked reply: an action returns it when the answer is not available yet. The chain unwinds, the session is saved,
 * the HTTP worker is freed; then the REST pool holds the reply.
 *
 * The whole wait is a single object: it is the entry in the pool's set, in the pool's queue and in the waits of its
 * source (for a channel, its follower is). There is no promise, timer or closure per wait.
 *
 * The order of calls: `ready`, then `waiting` and `started` (at once, or when a worker is free), then either the
 * reply's own `answer` or `fail`, or the pool's `ended`. After that nothing is called.
 */
import type { CoreContext } from './context.ts'
import { DeferredReply, type ReadyReply, type StreamReply } from './reply.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'

/** The kind of worker that a reply uses. */
export type ParkedKind = 'longpoll' | 'sse'

/**
 * Why the pool ends a wait: time-out, client disconnected, server stops, a HEAD request, which never waits, or session
 * ended.
 */
export type EndReason = 'deadline' | 'left' | 'stop' | 'head' | 'session'

/** The state of a wait. `asking`: `ready` is pending. `queued`: without a worker. `working`: with a worker. */
type ParkedState = 'made' | 'asking' | 'queued' | 'working' | 'over'

/** Holds parked replies; the REST pool (`core/rest-pool.ts`) implements it. */
export interface Parking {
  /** Ends a wait: with the given reply if the wait ended itself, else with the reply of its `ended`. */
  end(parked: ParkedReply, ending: EndReason | 'answered', reply?: ReadyReply | DeferredReply): void
  /** Begins a stream that `started` did not begin. */
  begin(parked: ParkedReply, stream: StreamReply): void
  /** Ends a wait with an error. */
  fail(parked: ParkedReply, error: unknown): void
}

/** A waiting reply. Long polls, streams and holds extend it. */
export abstract class ParkedReply extends DeferredReply {
  /** The kind of worker. A getter, which takes no memory. */
  abstract readonly kind: ParkedKind
  readonly ctx: CoreContext
  /** The time-out in milliseconds from the start of the wait, from 0; Infinity: the pool's. */
  readonly timeoutMs: number

  /** Set by the pool. */
  state: ParkedState = 'made'
  parking: Parking | undefined = undefined
  /** Whether the session that opened it has ended. */
  isRevoked = false
  /** Set by the pool: milliseconds by `performance.now()`; Infinity: never. */
  deadlineAt = Infinity

  constructor(ctx: CoreContext, timeoutMs: number) {
    super()
    this.ctx = ctx
    this.timeoutMs = timeoutMs
  }

  /**
   * Returns the answer if it is already available; no worker is needed. Not called for HEAD. It may throw, such as
   * HttpError 400 for a bad cursor. When it returns a promise and the client disconnects, `ended('left')` is called and
   * the value of the promise is discarded; check `isOver` before taking an event that cannot be put back.
   */
  abstract ready(): MaybePromise<ReadyReply | undefined>

  /** Called when the wait begins, with a worker or in the queue: register with the source. May answer at once. */
  abstract waiting(): void

  /**
   * Called when a worker is assigned. A stream returns its beginning, or passes it to `begin` later: the header section
   * is written with the context's fields, then `send` is called, which does not end the response. Other replies return
   * undefined.
   */
  abstract started(): StreamReply | undefined

  /**
   * Called when the pool ends the wait: unregister. Returns the reply without an event; undefined if the client has
   * disconnected, or for a stream that had begun and has ended the response itself.
   */
  abstract ended(reason: EndReason): MaybePromise<ReadyReply | undefined>

  /** Whether it is too late for an answer: the wait is over, or its client has disconnected. */
  get isOver(): boolean {
    return this.state === 'over' || this.ctx.gone
  }

  get needsClient(): boolean {
    return this.state !== 'over'
  }

  revoke(): void {
    this.isRevoked = true
    if (!this.isOver) this.parking?.end(this, 'session')
  }

  /**
   * Ends the wait with an answer, or with another waiting reply; undefined: a stream that has ended the response
   * itself. Unregister first.
   * @returns false if the wait was over or the client has disconnected: the event was not sent, pass it to the next
   *   wait. For a client that has disconnected `ended('left')` follows, unless it was called before
   */
  protected answer(reply: ReadyReply | DeferredReply | undefined): boolean {
    if (this.parking === undefined || this.isOver) return false
    this.parking.end(this, 'answered', reply)
    return true
  }

  /** Begins a stream that `started` did not begin. Does nothing when the wait is over. */
  protected begin(stream: StreamReply): void {
    this.parking?.begin(this, stream)
  }

  /** Ends the wait with an error: the status of an HttpError, else 500. Does nothing before it is parked. */
  protected fail(error: unknown): void {
    this.parking?.fail(this, error)
  }
}

/** Casts a deferred reply to its actual class. */
export function asParked(reply: DeferredReply): ParkedReply {
  return reply as ParkedReply // No other class extends DeferredReply: contexts do not import this file.
}
