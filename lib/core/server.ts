/**
 * The path of a request, from top to bottom:
 *
 * socket -> the end of the turn -> admit -> find the route -> a worker of the pool -> middleware and action
 * -> respond | park -> access log
 *
 * It has two exits, a reply (`settle`) and an error (`fail`), which cuts the connection if it cannot be sent. Without a
 * reply a request is a 404. A parked reply goes to the REST pool, which later takes one of the two exits.
 */
import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { AccessLogPort, LogPort, MetricsPort, OpenLog, RunningPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { isAbortError } from '../base/reason.ts'
import type { Chain } from '../chain/compose.ts'
import { notFound, type CoreContext } from '../http/context.ts'
import { errorReply, toHttpError, type PageForError } from '../http/error-reply.ts'
import { HttpError, Refusal, type ErrorCode } from '../http/errors.ts'
import type { ContextClass } from '../http/features.ts'
import { checkFraming, toOriginForm } from '../http/framing.ts'
import { label } from '../http/label.ts'
import { asParked } from '../http/parked.ts'
import {
  BodyReply,
  DeferredReply,
  emptyReply,
  UpgradeReply,
  type ReadyReply,
  type Reply,
  type StreamReply,
} from '../http/reply.ts'
import type { Registry } from '../routing/registry.ts'
import { ordinaryMethods, PathEncodingError } from '../routing/trie.ts'
import { BodyWaits } from './body-waits.ts'
import { connectionOf } from './connection.ts'
import { handshakeResponse } from './connections.ts'
import { overloaded, Pool, waitedTooLong, type PoolOptions } from './pool.ts'
import { isLost, isSent, Responder, wasCut } from './respond.ts'
import { RestPool, type RestPoolOptions } from './rest-pool.ts'
import { TurnEnd } from './turn-end.ts'

/** Finds static files. */
interface StaticFilesPort {
  /**
   * Returns the reply for a static file; undefined if there is no such file. May throw HttpError, like an action.
   * @param usesFallback whether the page of a single-page application answers for a missing file; default: true
   */
  find(ctx: CoreContext, usesFallback?: boolean): MaybePromise<StreamReply | undefined>
}

/** Closes the application for a while. */
interface MaintenancePort {
  readonly refusal: HttpError
  /** Whether the application is closed to the client of a request. */
  keepsOut(ctx: CoreContext): boolean
}

/** The parts of a server. */
export interface ServerParts {
  readonly registry: Registry<Chain>
  readonly ContextClass: ContextClass
  readonly pool: Omit<PoolOptions<CoreContext>, 'start' | 'onExpired'>
  /** For long polls and streams. */
  readonly restPool: RestPoolOptions
  /** Throws HttpError for a Host field that this server does not serve. */
  readonly checkHost: (ctx: CoreContext) => void
  readonly staticFiles: StaticFilesPort | undefined
  readonly accessLog: AccessLogPort | undefined
  readonly metrics: MetricsPort
  readonly log: OpenLog
  readonly running: RunningPort
  /** Whether a 500 shows its stack to this client. */
  readonly showsDetails: (ctx: CoreContext) => boolean
  /** Renders error pages; when it returns undefined, the built-in page is sent. */
  readonly pageForError?: PageForError
  /** Sets the header fields of responses for which no middleware of a route has run. */
  readonly headersWithoutRoute?: (ctx: CoreContext) => void
  /** Whether a path must not exist for the client of a request; undefined: no path is hidden. */
  readonly hides?: ((ctx: CoreContext) => boolean) | undefined
  readonly maintenance?: MaintenancePort | undefined
  /** Returns the reply to a CORS preflight; undefined for any other OPTIONS. */
  readonly preflight?: (ctx: CoreContext) => BodyReply | undefined
}

/** The Expect field of a request (RFC 9110, section 10.1.1): `continue` requests `100 Continue` before the body. */
export type Expect = 'nothing' | 'continue' | 'unknown'

/** Serves requests. */
export class RequestServer {
  /** The workers that run middleware and actions. */
  readonly pool: Pool<CoreContext>
  /** Holds parked replies. */
  readonly restPool: RestPool
  readonly #parts: ServerParts
  readonly #errorLog: LogPort
  readonly #requestLog: LogPort
  readonly #responseLog: LogPort
  readonly #cutResponses: RateLimited
  readonly #refusals: RateLimited
  readonly #responder = new Responder()
  readonly #turnEnd = new TurnEnd<CoreContext>((ctx) => this.#admitUnlessOver(ctx))
  readonly #whenIdle: (() => void)[] = []
  #active = 0
  #isDraining = false

  constructor(parts: ServerParts) {
    this.#parts = parts
    this.#errorLog = parts.log('error')
    this.#requestLog = parts.log('worker_http')
    this.#responseLog = parts.log('response')
    this.#cutResponses = new RateLimited(this.#responseLog.info, 1000)
    this.#refusals = new RateLimited(parts.log('pool').warn, 1000)
    this.pool = new Pool<CoreContext>({
      ...parts.pool,
      start: (ctx) => this.#runAsWorker(ctx),
      onExpired: (ctx, waitedMs) => this.#refuseLate(ctx, waitedMs),
    })
    parts.ContextClass.prototype.services.bodyWaits = new BodyWaits(this.pool)
    const host = {
      settle: (ctx: CoreContext, reply: ReadyReply | DeferredReply) => this.#answerParked(ctx, reply),
      begin: (ctx: CoreContext, stream: StreamReply) => this.#responder.respond(ctx, stream, this.#isDraining),
      fail: (ctx: CoreContext, error: unknown) => this.#fail(ctx, error),
      refuse: (ctx: CoreContext, error: HttpError, state: string) => this.#refuse(ctx, error, state),
    }
    this.restPool = new RestPool(host, parts.restPool, parts.log)
  }

  /** Requests being served now: until both the response and the action have ended. */
  get active(): number {
    return this.#active
  }

  /** Accepts a request whose header section has been read. It is served at the end of this turn of the event loop. */
  readonly handle = (request: IncomingMessage, response: ServerResponse, expect: Expect): void => {
    const connection = connectionOf(request.socket)
    if (!connection.takesRequest) {
      // Only if `holdRequests` does not support this Node: a request arrives before its turn.
      request.resume()
      return connection.endAfterCurrent()
    }
    const targetIsPath = toOriginForm(request)
    const ctx = new this.#parts.ContextClass(request, response)
    ctx.expectsContinue = expect === 'continue'
    if (!targetIsPath) ctx.flaw = noTarget
    else if (expect === 'unknown') ctx.flaw = unknownExpectation
    this.#began(ctx)
    this.#turnEnd.add(ctx)
  }

  /**
   * Serves a WebSocket handshake, like any other request but on a socket that Node has released.
   * @param head the bytes that arrived after its header section
   */
  readonly upgrade = (request: IncomingMessage, socket: Socket, head: Buffer): void => {
    const targetIsPath = toOriginForm(request)
    const response = handshakeResponse(socket, request, head)
    const ctx = new this.#parts.ContextClass(request, response)
    if (!targetIsPath) ctx.flaw = noTarget
    ctx.upgrading = { socket, head }
    this.#began(ctx)
    response.on('close', () => this.#finishClosed(ctx)) // A WebSocket keeps the connection.
    this.#admit(ctx)
  }

  /** Makes every further response the last on its connection, and ends parked replies. */
  drain(): void {
    this.#isDraining = true
    this.restPool.stop()
  }

  /** Resolves once no request is being served. */
  idle(): Promise<void> {
    return this.#active === 0 ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve))
  }

  #began(ctx: CoreContext): void {
    this.#active += 1
    connectionOf(ctx.request.socket).began(ctx, this.#finishClosed)
  }

  readonly #finishClosed = (ctx: CoreContext): void => {
    this.#finish(ctx, ctx.response.writableFinished && !isLost(ctx))
  }

  /** Meanwhile the client may have disconnected, or the connection may have been ended with an error. */
  #admitUnlessOver(ctx: CoreContext): void {
    const connection = connectionOf(ctx.request.socket)
    if (connection.current !== ctx) connection.whenFree(AsyncResource.bind(() => this.#turnEnd.add(ctx)))
    else if (!ctx.gone && !ctx.response.headersSent) this.#admit(ctx)
  }

  #admit(ctx: CoreContext): void {
    try {
      checkFraming(ctx)
      if (ctx.flaw !== undefined) throw ctx.flaw
      this.#parts.checkHost(ctx)
      if (this.#parts.hides?.(ctx) === true) return this.#hide(ctx)
      const { maintenance } = this.#parts
      if (maintenance?.keepsOut(ctx) === true) return this.#answerInMaintenance(ctx, maintenance)
      const preflight = ctx.method === 'OPTIONS' ? this.#parts.preflight?.(ctx) : undefined
      if (preflight !== undefined) return this.#settle(ctx, preflight)
      const match = this.#parts.registry.find(ctx.method, ctx.path)
      if (match === undefined) return this.#answerUnmatched(ctx)
      ctx.matched(match)
      if (match.route.system) return this.#run(ctx)
      if (this.pool.enter(ctx) !== 'refused') return
      this.#parts.headersWithoutRoute?.(ctx) // No middleware has run.
      this.#refuse(ctx, overloaded, `${this.pool.busy} requests running, ${this.pool.waiting} waiting`)
    } catch (error) {
      if (error instanceof PathEncodingError) ctx.formatOfPrefix = error.format
      if (ctx.route === undefined) this.#parts.headersWithoutRoute?.(ctx)
      this.#fail(ctx, error)
    }
  }

  /** Answers 503 and logs at most one line a second. Not thrown: that takes a fifth of the time of a refusal. */
  #refuse(ctx: CoreContext, error: HttpError, state: string): void {
    this.#refusals.say(`refused ${label(ctx)}: ${state}`, '', { request: ctx })
    this.#fail(ctx, error)
  }

  #refuseLate(ctx: CoreContext, waitedMs: number): void {
    this.#parts.headersWithoutRoute?.(ctx) // No middleware has run.
    const state = `it waited ${Math.round(waitedMs)} ms in the queue, ${this.pool.waiting} are waiting`
    this.#refuse(ctx, waitedTooLong, state)
  }

  /** Answers as if nothing had the path: no route, no static file. */
  #hide(ctx: CoreContext): void {
    ctx.shutOut = true
    this.#parts.headersWithoutRoute?.(ctx)
    ctx.formatOfPrefix = this.#parts.registry.errorFormatOf(ctx.path)
    this.#fail(ctx, notFound(ctx.path))
  }

  #answerUnmatched(ctx: CoreContext): void {
    this.#parts.headersWithoutRoute?.(ctx)
    ctx.formatOfPrefix = this.#parts.registry.errorFormatOf(ctx.path)
    const methods = ctx.path === '*' ? ordinaryMethods : this.#parts.registry.allowed(ctx.path)
    if (methods.length > 0) {
      const allow = methods.join(', ')
      if (ctx.method !== 'OPTIONS') return this.#fail(ctx, methodNotAllowed(ctx, allow))
      ctx.setHeader('Allow', allow)
      return this.#settle(ctx, emptyReply)
    }
    this.#answerStatic(ctx, this.#parts.staticFiles?.find(ctx), () => notFound(ctx.path))
  }

  /** Answers with a static file, where no route has its path, else with the page of maintenance. */
  #answerInMaintenance(ctx: CoreContext, { refusal }: MaintenancePort): void {
    const { registry, staticFiles, headersWithoutRoute } = this.#parts
    headersWithoutRoute?.(ctx)
    ctx.formatOfPrefix = registry.errorFormatOf(ctx.path)
    const isOfRoute = registry.allowed(ctx.path).length > 0
    this.#answerStatic(ctx, isOfRoute ? undefined : staticFiles?.find(ctx, false), () => refusal)
  }

  #answerStatic(
    ctx: CoreContext,
    found: MaybePromise<StreamReply | undefined>,
    missing: () => HttpError | Refusal,
  ): void {
    const answer = (reply: StreamReply | undefined): void => {
      if (reply === undefined) this.#fail(ctx, missing())
      else this.#settle(ctx, reply)
    }
    if (!(found instanceof Promise)) return answer(found)
    found.then(answer, (error: unknown) => this.#fail(ctx, error))
  }

  #runAsWorker(ctx: CoreContext): void {
    ctx.holdsWorker = true
    this.#run(ctx)
  }

  #run(ctx: CoreContext): void {
    this.#turnEnd.beforeAction()
    ctx.runningSlot = this.#parts.running.began(ctx)
    try {
      const outcome = (ctx.run as Chain)(ctx)
      if (!(outcome instanceof Promise)) return this.#settle(ctx, outcome)
      outcome.then(
        (reply) => this.#settleLater(ctx, reply),
        (error: unknown) => this.#fail(ctx, error),
      )
    } catch (error) {
      this.#fail(ctx, error)
    }
  }

  /** Queues an asynchronous answer, to be sent together with those of requests that arrived in the same turn. */
  #settleLater(ctx: CoreContext, reply: Reply): void {
    if (!mayBeHeld(ctx, reply)) return this.#settle(ctx, reply)
    this.#turnEnd.hold(ctx, () => this.#send(ctx, reply, false))
    this.#release(ctx)
  }

  #settle(ctx: CoreContext, reply: Reply): void {
    try {
      if (reply instanceof BodyReply) this.#responder.respondBody(ctx, reply, this.#isDraining)
      else if (reply instanceof DeferredReply) this.restPool.park(ctx, asParked(reply))
      else if (reply instanceof UpgradeReply) reply.takeOver()
      else this.#responder.respond(ctx, reply, this.#isDraining)
    } catch (error) {
      return this.#fail(ctx, error)
    }
    this.#release(ctx)
    this.#finishIfSent(ctx)
  }

  /** @param isOfError whether the reply reports an error: if it cannot be written, the connection is cut */
  #send(ctx: CoreContext, reply: BodyReply, isOfError: boolean): void {
    try {
      this.#responder.respondBody(ctx, reply, this.#isDraining)
    } catch (error) {
      return isOfError ? this.#cut(ctx, error) : this.#fail(ctx, error)
    }
    this.#finishIfSent(ctx)
  }

  /**
   * Answers a parked request, whose worker was freed before. `finish` is left to the event `close`: one event may
   * answer thousands, and the last of them should not wait for the metrics and access log lines of the others.
   */
  #answerParked(ctx: CoreContext, reply: ReadyReply | DeferredReply): void {
    try {
      if (reply instanceof DeferredReply) this.restPool.park(ctx, asParked(reply))
      else this.#responder.respond(ctx, reply, this.#isDraining)
    } catch (error) {
      this.#fail(ctx, error)
    }
  }

  #fail(ctx: CoreContext, thrown: unknown): void {
    const { response } = ctx
    try {
      const error = toHttpError(thrown)
      this.#report(ctx, error)
      if (response.headersSent && !response.writableEnded) throw new Error('The response had already begun')
      const reply = errorReply(ctx, error, this.#parts.showsDetails(ctx), this.#parts.pageForError)
      if (mayBeHeld(ctx, reply)) this.#turnEnd.hold(ctx, () => this.#send(ctx, reply, true))
      else this.#responder.respondBody(ctx, reply, this.#isDraining)
    } catch (second) {
      this.#cut(ctx, second)
    }
    this.#release(ctx)
    this.#finishIfSent(ctx)
  }

  #cut(ctx: CoreContext, error: unknown): void {
    const details = { thrown: error, request: ctx, isLabelled: true }
    this.#responseLog.error('the error response could not be sent, so the connection was cut', details)
    ctx.response.destroy()
  }

  /** The operating system accepts most responses as soon as they are written, so there is no event to wait for. */
  #finishIfSent(ctx: CoreContext): void {
    if (isSent(ctx.response)) this.#finish(ctx, true)
    else if (!ctx.closed) ctx.response.on('close', () => this.#finishClosed(ctx))
  }

  #release(ctx: CoreContext): void {
    if (!ctx.running) return
    this.#parts.running.ended(ctx.runningSlot)
    ctx.runningSlot = -1
    if (ctx.closed) {
      this.#leave()
      this.#discard(ctx)
    }
    // Last: the pool starts waiting requests, which may finish this request, too.
    if (ctx.holdsWorker) {
      ctx.holdsWorker = false
      this.pool.leave()
    }
  }

  #finish(ctx: CoreContext, completed: boolean): void {
    if (ctx.closed) return
    if (this.pool.waiting > 0) this.pool.forget(ctx)
    ctx.close(completed)
    if (!ctx.running) this.#discard(ctx) // Else the action may still read a body that has fully arrived.
    const { parked } = ctx
    if (parked !== undefined) this.restPool.left(asParked(parked))
    else if (wasCut(ctx)) this.#cutResponses.say(cutResponse, '', { request: ctx, isLabelled: true })
    const endedAtMs = Date.now()
    if (ctx.counted) this.#parts.metrics.record(ctx, parked === undefined, endedAtMs)
    this.#parts.accessLog?.write(ctx, endedAtMs)
    if (this.#requestLog.debugEnabled) {
      const { sentStatus: status, durationMs } = ctx
      const message = `${label(ctx)} -> ${status} in ${durationMs.toFixed(3)} ms`
      this.#requestLog.debug(message, { request: ctx, status, durationMs })
    }
    if (!ctx.running) this.#leave()
    connectionOf(ctx.request.socket).ended(ctx.request)
  }

  #discard(ctx: CoreContext): void {
    ctx.discardBody()?.catch((thrown: unknown) => {
      const details = { thrown, request: ctx, isLabelled: true }
      this.#responseLog.error("an upload's temporary files could not be removed", details)
    })
  }

  #leave(): void {
    this.#active -= 1
    if (this.#active === 0 && this.#whenIdle.length > 0) for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  #report(ctx: CoreContext, error: HttpError | Refusal): void {
    const { cause = error } = error
    const logged = error.status >= 500 && !loggedElsewhere.has(error.code) && !(ctx.left && isAbortError(cause))
    const { status, code, message } = error
    const details = { request: ctx, isLabelled: true, status }
    if (logged) this.#errorLog.error(message, { ...details, thrown: cause })
    else if (this.#requestLog.debugEnabled) this.#requestLog.debug(`${status} ${code}: ${message}`, details)
  }
}

/**
 * Whether an answer may be held until the turn ends. Bytes may not: the action may change them, or reuse their memory
 * for the next answer. Nor may an answer while the request body still arrives: `respond` ends the connection then.
 */
function mayBeHeld(ctx: CoreContext, reply: Reply): reply is BodyReply {
  if (!(reply instanceof BodyReply) || typeof reply.body !== 'string') return false
  return !ctx.hasBody || ctx.request.complete
}

const noTarget = new HttpError(400, 'bad_request', 'The request target is neither a path nor a URL')
const cutResponse = 'the connection closed before the whole response was sent'
const unknownExpectation = new HttpError(417, 'expectation_failed', 'Expect must be 100-continue')

/** Errors that other code logs at most once a second, instead of for each request. */
const loggedElsewhere: ReadonlySet<string> = new Set<ErrorCode>(['overloaded', 'shared_away', 'maintenance'])

function methodNotAllowed(ctx: CoreContext, allow: string): Refusal {
  return new Refusal(405, 'method_not_allowed', `${ctx.path} takes ${allow}, not ${ctx.method}`, { Allow: allow })
}
