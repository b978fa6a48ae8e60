/**
 * A parked reply: an action returns it when the answer is not available yet. The chain unwinds, the session is saved,
 * the HTTP worker is freed; then the REST pool holds the reply.
 *
 * One object is the whole wait: it is the entry in the set of what the pool holds, in the queue of the pool and among
 * the waits of its source; of a channel its follower is. There is no promise, timer or closure for each wait.
 *
 * The order of calls: `ready`, then `waiting` and `started` (at once, or when a worker is free), then either the
 * reply's own `answer` or `fail`, or the pool's `ended`. After that nothing is called.
 */
import type { CoreContext } from './context.ts'
import { DeferredReply, type ReadyReply, type StreamReply } from './reply.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'

/** Whose workers it takes. */
export type ParkedKind = 'longpoll' | 'sse'

/**
 * Why the pool ends a wait: time-out, the client disconnected, the server stops, a HEAD, which never waits, or the
 * session has ended.
 */
export type EndReason = 'deadline' | 'left' | 'stop' | 'head' | 'session'

/** The state of a wait. `asking`: `ready` has not answered yet. `queued`: without a worker, `working`: with one. */
type ParkedState = 'made' | 'asking' | 'queued' | 'working' | 'over'

/** Holds parked replies; the REST pool (`core/rest-pool.ts`) implements it. */
export interface Parking {
  /** Ends a wait: with an answer where the reply itself ends it, else as its `ended` answers. */
  end(parked: ParkedReply, ending: EndReason | 'answered', reply?: ReadyReply | DeferredReply): void
  /** Begins the stream of a reply that `started` has not begun. */
  begin(parked: ParkedReply, stream: StreamReply): void
  /** Ends a wait with an error. */
  fail(parked: ParkedReply, error: unknown): void
}

/** A reply that waits. Long polls, streams and holds extend it. */
export abstract class ParkedReply extends DeferredReply {
  /** Whose workers it takes. A getter takes no memory. */
  abstract readonly kind: ParkedKind
  readonly ctx: CoreContext
  /** The time-out in milliseconds from the moment it waits, 0 and up; Infinity: that of the pool. */
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
   * The answer, if it is available already; it needs no worker. Not called for HEAD. What it throws is answered too,
   * such as HttpError 400 for a bad cursor. When it returns a promise and the client disconnects, `ended('left')` is
   * called and the value of the promise is discarded; check `isOver` before taking an event that cannot be returned.
   */
  abstract ready(): MaybePromise<ReadyReply | undefined>

  /** Called when it begins to wait, with a worker or in the queue: register with the source. It may answer at once. */
  abstract waiting(): void

  /**
   * Called when it has a worker. A stream returns its beginning, or passes it to `begin` later: the header section is
   * written with the context's fields, then `send` is called, which does not end the response. Others return undefined.
   */
  abstract started(): StreamReply | undefined

  /**
   * Called when the pool ends the wait: unregister. Returns the empty answer; undefined when the client has
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
   * Ends the wait with an answer, or with a reply that waits in turn; undefined: a stream that has ended the response
   * itself. Unregister first.
   * @returns false when it was over or the client has disconnected: the event was not sent, and goes to the next wait.
   *   `ended('left')` follows for a client that has disconnected, unless it was called before
   */
  protected answer(reply: ReadyReply | DeferredReply | undefined): boolean {
    if (this.parking === undefined || this.isOver) return false
    this.parking.end(this, 'answered', reply)
    return true
  }

  /** Begins a stream that `started` has not begun. Does nothing when the wait is over. */
  protected begin(stream: StreamReply): void {
    this.parking?.begin(this, stream)
  }

  /** Ends the wait with an error: the status of an HttpError, else 500. Does nothing before it is parked. */
  protected fail(error: unknown): void {
    this.parking?.fail(this, error)
  }
}

/** The class of a deferred reply as the server knows it. */
export function asParked(reply: DeferredReply): ParkedReply {
  return reply as ParkedReply // No other class extends DeferredReply: contexts do not import this file.
}
