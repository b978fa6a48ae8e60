/**
 * The REST pool: holds parked replies until they are answered, time out, their clients disconnect or the server stops.
 * Long polls and streams have separate workers; without a free worker, replies wait in a common queue.
 *
 * A reply waits for its event both in the queue and with a worker, and can be answered in either state. One function,
 * `end`, ends a wait for every reason, so workers are freed in one place.
 *
 * Time-outs are checked twenty times a second: one interval checks all held replies, instead of a timer for each.
 */
import { performance } from 'node:perf_hooks'
import type { LogPort, OpenLog } from '../base/ports.ts'
import { isAbortError } from '../base/reason.ts'
import type { CoreContext } from '../http/context.ts'
import type { HttpError } from '../http/errors.ts'
import type { EndReason, ParkedReply, Parking } from '../http/parked.ts'
import type { DeferredReply, ReadyReply, StreamReply } from '../http/reply.ts'
import { connectionOf } from './connection.ts'
import { overloaded, Pool, type QueuePlaces } from './pool.ts'

/** The limits of the pool. */
export interface RestPoolOptions {
  /** The number of workers for streams; with 0 every stream is refused. */
  readonly workersSse: number
  /** The number of workers for long polls; with 0 every long poll is refused. */
  readonly workersLongPoll: number
  /** The maximum of replies of both kinds that wait for a worker, from 0. */
  readonly queueSize: number
  /** The longest wait in milliseconds; 0: no limit. */
  readonly streamTimeoutMs: number
  /** Called when a queued reply gets its worker, with the milliseconds that it waited. */
  readonly onWaited?: (waitedMs: number) => void
}

/** The functions of the server that the pool calls. Only `begin` may throw. */
interface ParkingHost {
  /** Answers a request; another parked reply waits again. */
  settle(ctx: CoreContext, reply: ReadyReply | DeferredReply): void
  /** Writes the beginning of a stream. */
  begin(ctx: CoreContext, stream: StreamReply): void
  /** Answers with an error. */
  fail(ctx: CoreContext, error: unknown): void
  /** Answers with the error; `state` is for a log line. */
  refuse(ctx: CoreContext, error: HttpError, state: string): void
}

/** How a wait ended. */
type Ending = EndReason | 'answered' | 'failed'

/** How the log names each ending. */
const wordsOf: Readonly<Record<Ending, string>> = {
  answered: 'answered',
  failed: 'failed',
  deadline: 'timed out',
  left: 'client disconnected',
  stop: 'ended by the stop',
  head: 'answered as a HEAD',
  session: 'ended with its session',
}

/** The minimum time-out of `ready()`, in milliseconds, even if the wait itself is shorter. */
const minReadyMs = 10_000
/** How long a client may take to read the rest of a stream that the pool has ended, in milliseconds. */
const lastBytesMs = 500
/** How often the pool checks for waits that are due, in milliseconds: none ends much later. */
const sweepEveryMs = 50
/** The maximum of waits that the pool ends in one turn of the event loop, so that other work gets its turn. */
const mostPerTurn = 256

/** Holds parked replies. */
export class RestPool implements Parking {
  /** The workers of the long polls. */
  readonly longpoll: Pool<ParkedReply>
  /** The workers of the streams. */
  readonly sse: Pool<ParkedReply>
  readonly #host: ParkingHost
  readonly #log: LogPort
  readonly #errorLog: LogPort
  readonly #places: QueuePlaces
  readonly #streamTimeoutMs: number
  /** Every reply that may time out, in order of arrival. */
  readonly #held = new Set<ParkedReply>()
  /** Runs while any reply is held. */
  #sweeps: NodeJS.Timeout | undefined = undefined
  #stopping = false

  constructor(host: ParkingHost, options: RestPoolOptions, log: OpenLog) {
    const { onWaited, streamTimeoutMs } = options
    this.#host = host
    this.#log = log('worker_otros')
    this.#errorLog = log('error')
    this.#places = { size: options.queueSize, taken: 0 }
    const makePool = (workers: number): Pool<ParkedReply> =>
      new Pool({
        workers,
        queueSize: workers === 0 ? 0 : this.#places,
        start: (parked) => this.#start(parked),
        ...(onWaited === undefined ? {} : { onWaited }),
      })
    this.longpoll = makePool(options.workersLongPoll)
    this.sse = makePool(options.workersSse)
    this.#streamTimeoutMs = streamTimeoutMs === 0 ? Infinity : streamTimeoutMs
  }

  /** Replies of both kinds that wait for a worker now. */
  get queue(): number {
    return this.#places.taken
  }

  /** Replies of both kinds refused since the pool was created. */
  get refused(): number {
    return this.longpoll.refused + this.sse.refused
  }

  /**
   * Accepts a parked reply: answers it if its answer is ready, else holds it.
   * @throws Error for a reply of another request, or a reply that was parked before
   */
  park(ctx: CoreContext, parked: ParkedReply): void {
    if (parked.ctx !== ctx || parked.state !== 'made') {
      throw new Error('A waiting reply can be returned only once, and only for the request that created it')
    }
    parked.parking = this
    parked.state = 'asking'
    if (ctx.method === 'HEAD') return this.end(parked, 'head')
    if (ctx.gone || (parked.needsClient && !connectionOf(ctx.request.socket).mayWait())) return this.end(parked, 'left')
    if (parked.isRevoked) return this.end(parked, 'session')
    try {
      const ready = parked.ready()
      if (!(ready instanceof Promise)) return this.#answerOrEnter(parked, ready)
      this.#hold(parked, Math.max(parked.timeoutMs, minReadyMs))
      ready.then(
        (reply) => this.#answerOrEnter(parked, reply),
        (error: unknown) => this.fail(parked, error),
      )
    } catch (error) {
      this.fail(parked, error)
    }
  }

  /** Writes the beginning of a stream, which continues to wait. */
  begin(parked: ParkedReply, stream: StreamReply): void {
    try {
      if (!parked.isOver) this.#host.begin(parked.ctx, stream)
    } catch (error) {
      this.fail(parked, error)
    }
  }

  /** Ends a wait with an error. If it is already over, only logs the error. */
  fail(parked: ParkedReply, error: unknown): void {
    const { ctx } = parked
    if (parked.state !== 'over') return this.end(parked, 'failed', error)
    if (isAbortError(error)) return
    this.#errorLog.error('failed after its wait had ended', { thrown: error, request: ctx, isLabelled: true })
  }

  /** Call when the client has disconnected or the response has ended. */
  left(parked: ParkedReply): void {
    if (parked.state !== 'over') this.end(parked, 'left')
  }

  /** Ends every long poll without an event, within a few turns of the event loop. */
  endPolls(): void {
    for (const parked of this.#held) if (parked.kind === 'longpoll') parked.deadlineAt = -Infinity
    setImmediate(() => this.#sweep())
  }

  /** Ends every wait within a few turns of the event loop, including later ones. */
  stop(): void {
    this.#stopping = true
    setImmediate(() => this.#sweep())
  }

  #answerOrEnter(parked: ParkedReply, reply: ReadyReply | undefined): void {
    if (parked.isOver) return
    if (reply !== undefined) return this.end(parked, 'answered', reply)
    if (this.#stopping) return this.end(parked, 'stop')
    if (parked.timeoutMs === 0) return this.end(parked, 'deadline')
    const { ctx, kind } = parked
    this.#hold(parked, parked.timeoutMs)
    const entry = this[kind].enter(parked)
    if (entry === 'queued') this.#wait(parked, 'queued')
    if (entry === 'refused') {
      this.#forget(parked)
      const held = `${this[kind].busy} ${kind === 'sse' ? 'streams' : 'long polls'} held`
      this.#host.refuse(ctx, overloaded, `${held}, ${this.queue} of the REST pool waiting`)
    }
  }

  /** Starts the time-out of a reply. From now on the stop ends it, too. */
  #hold(parked: ParkedReply, timeoutMs: number): void {
    parked.deadlineAt = performance.now() + Math.min(timeoutMs, this.#streamTimeoutMs)
    parked.ctx.parked = parked
    this.#held.add(parked)
    if (this.#stopping) setImmediate(() => this.#sweep())
    this.#sweeps ??= setInterval(() => this.#sweep(), sweepEveryMs)
  }

  #forget(parked: ParkedReply): void {
    parked.state = 'over'
    this.#held.delete(parked)
    if (this.#held.size > 0) return
    clearInterval(this.#sweeps)
    this.#sweeps = undefined
  }

  /** Ends the waits that are due; during a stop all are. */
  #sweep(): void {
    const nowMs = performance.now()
    let ended = 0
    for (const parked of this.#held) {
      if (!this.#stopping && parked.deadlineAt > nowMs) continue
      if (ended === mostPerTurn) return void setImmediate(() => this.#sweep())
      this.end(parked, this.#stopping ? 'stop' : 'deadline')
      ended += 1
    }
  }

  #wait(parked: ParkedReply, state: 'queued' | 'working'): void {
    parked.state = state
    if (this.#log.debugEnabled) this.#debug(parked, `parked (${parked.kind}, ${state})`)
    try {
      parked.waiting()
    } catch (error) {
      this.fail(parked, error)
    }
  }

  /** Called by the pools when the reply gets a worker. */
  #start(parked: ParkedReply): void {
    if (parked.state === 'queued') parked.state = 'working'
    else this.#wait(parked, 'working')
    if (parked.isOver) return
    try {
      const stream = parked.started()
      if (stream !== undefined) this.begin(parked, stream)
    } catch (error) {
      this.fail(parked, error)
    }
  }

  /**
   * Ends a wait that is not over.
   * @param outcome the reply, or the error, of a wait that ended itself
   */
  end(parked: ParkedReply, how: Ending, outcome?: unknown): void {
    const { ctx, kind, state } = parked
    this.#forget(parked)
    if (how === 'failed') this.#host.fail(ctx, outcome)
    else if (how === 'answered') this.#settle(ctx, outcome as ReadyReply | DeferredReply | undefined)
    else this.#endUnanswered(parked, how)
    if (this.#log.debugEnabled) this.#debug(parked, `${wordsOf[how]} after ${ctx.durationMs.toFixed(0)} ms`)
    if (state === 'working') this[kind].leave()
    else if (state === 'queued') this[kind].forget(parked)
  }

  #endUnanswered(parked: ParkedReply, reason: EndReason): void {
    const { ctx } = parked
    if (reason !== 'left' && reason !== 'head') ctx.abort()
    try {
      const reply = parked.ended(reason)
      if (!(reply instanceof Promise)) return this.#settle(ctx, reply)
      reply.then(
        (late) => this.#settle(ctx, late),
        (error: unknown) => this.#host.fail(ctx, error),
      )
    } catch (error) {
      this.#host.fail(ctx, error)
    }
  }

  /** Sends the reply; undefined for a stream that has ended or a client that has disconnected. */
  #settle(ctx: CoreContext, reply: ReadyReply | DeferredReply | undefined): void {
    if (reply !== undefined) return this.#host.settle(ctx, reply)
    const { response } = ctx
    if (!ctx.gone && !response.writableFinished) setTimeout(() => response.destroy(), lastBytesMs)
  }

  #debug(parked: ParkedReply, message: string): void {
    this.#log.debug(message, { request: parked.ctx, isLabelled: true })
  }
}
