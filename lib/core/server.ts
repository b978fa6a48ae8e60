/**
 * The way of a request, from top to bottom:
 *
 * socket -> the end of the turn -> admit -> find the route -> a worker of the pool -> middleware and action
 * -> respond | park -> access log
 *
 * It has two exits, a reply (`settle`) and an error (`fail`). A request is a 404 until there is a reply. A reply that
 * waits goes to the REST pool, which comes back through one of the two.
 */
import { AsyncResource } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { AccessLogPort, MetricsPort, OpenLog } from '../base/ports.ts'
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

/** The parts of a server. */
export interface ServerParts {
  readonly registry: Registry<Chain>
  readonly ContextClass: ContextClass
  readonly pool: Omit<PoolOptions<CoreContext>, 'start' | 'onExpired'>
  /** For long polls and streams. */
  readonly restPool: RestPoolOptions
  /** Throws HttpError for a request with a Host field that this server does not serve. */
  readonly checkHost: (ctx: CoreContext) => void
  /** Gives the reply for a static file, if the path names one. Throws HttpError as an action may. */
  readonly staticFiles: ((ctx: CoreContext) => MaybePromise<StreamReply | undefined>) | undefined
  readonly accessLog: AccessLogPort | undefined
  readonly metrics: MetricsPort
  readonly log: OpenLog
  /** Whether a 500 shows its stack to this client. */
  readonly showsDetails: (ctx: CoreContext) => boolean
  /** Makes pages for errors; the built-in page is sent unless it does. */
  readonly pageForError?: PageForError
  /** Sets header fields of an answer before which no middleware of a route has run. */
  readonly headersWithoutRoute?: (ctx: CoreContext) => void
  /** The reply to an OPTIONS that asks whether another request may be sent; undefined when it is no such question. */
  readonly preflight?: (ctx: CoreContext) => BodyReply | undefined
}

/** The Expect field of a request (RFC 9110, section 10.1.1): `continue` asks for `100 Continue` before the body. */
export type Expect = 'nothing' | 'continue' | 'unknown'

/** Serves requests. */
export type RequestServer = ReturnType<typeof createRequestServer>

/** Joins the parts into a server. */
export function createRequestServer(parts: ServerParts) {
  const { registry, ContextClass, checkHost, staticFiles, accessLog } = parts
  const errorLog = parts.log('error')
  const requestLog = parts.log('worker_http')
  const responseLog = parts.log('response')
  const cutAnswers = new RateLimited(responseLog.info, 1000)
  const refusals = new RateLimited(parts.log('pool').warn, 1000)
  const pool = new Pool<CoreContext>({ ...parts.pool, start: runAsWorker, onExpired: refuseLate })
  const responder = new Responder()
  const bodyWaits = new BodyWaits(pool)
  ContextClass.prototype.services.bodyWaits = bodyWaits
  const begin = (ctx: CoreContext, stream: StreamReply): void => responder.respond(ctx, stream, draining)
  const restPool = new RestPool({ settle: answerParked, begin, fail, refuse }, parts.restPool, parts.log)
  const turnEnd = new TurnEnd(admitUnlessOver)
  const whenIdle: (() => void)[] = []
  let active = 0
  let draining = false

  /** Takes a request whose header section has been read. It is served at the end of this turn of the event loop. */
  function handle(request: IncomingMessage, response: ServerResponse, expect: Expect): void {
    const connection = connectionOf(request.socket)
    if (!connection.takesRequest) {
      // Only a Node that `holdRequests` does not know gives a request before its turn.
      request.resume()
      return connection.endAfterCurrent()
    }
    const targetIsPath = toOriginForm(request)
    const ctx = new ContextClass(request, response)
    ctx.expectsContinue = expect === 'continue'
    if (!targetIsPath) ctx.flaw = noTarget
    else if (expect === 'unknown') ctx.flaw = unknownExpectation
    began(ctx)
    turnEnd.add(ctx)
  }

  /**
   * Serves a WebSocket handshake. It goes the way of every request, and is answered on a socket that Node let go of.
   * @param head the bytes that arrived after its header section
   */
  function upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const targetIsPath = toOriginForm(request)
    const response = handshakeResponse(socket, request, head)
    const ctx = new ContextClass(request, response)
    if (!targetIsPath) ctx.flaw = noTarget
    ctx.upgrading = { socket, head }
    began(ctx)
    response.on('close', () => finishClosed(ctx)) // A WebSocket keeps the connection.
    admit(ctx)
  }

  function began(ctx: CoreContext): void {
    active += 1
    connectionOf(ctx.request.socket).began(ctx, finishClosed)
  }

  function finishClosed(ctx: CoreContext): void {
    finish(ctx, ctx.response.writableFinished && !isLost(ctx))
  }

  /** Meanwhile the client may have left, or its connection been ended with an error. */
  function admitUnlessOver(ctx: CoreContext): void {
    const connection = connectionOf(ctx.request.socket)
    if (connection.current !== ctx) connection.whenFree(AsyncResource.bind(() => turnEnd.add(ctx)))
    else if (!ctx.gone && !ctx.response.headersSent) admit(ctx)
  }

  function admit(ctx: CoreContext): void {
    try {
      checkFraming(ctx)
      if (ctx.flaw !== undefined) throw ctx.flaw
      checkHost(ctx)
      const preflight = ctx.method === 'OPTIONS' ? parts.preflight?.(ctx) : undefined
      if (preflight !== undefined) return settle(ctx, preflight)
      const match = registry.find(ctx.method, ctx.path)
      if (match === undefined) return answerUnmatched(ctx)
      ctx.matched(match)
      if (match.route.system) return run(ctx)
      if (pool.enter(ctx) !== 'refused') return
      parts.headersWithoutRoute?.(ctx) // None of the middleware has run.
      refuse(ctx, overloaded, `${pool.busy} requests at work, ${pool.waiting} waiting`)
    } catch (error) {
      if (error instanceof PathEncodingError) ctx.formatOfPrefix = error.format
      if (ctx.route === undefined) parts.headersWithoutRoute?.(ctx)
      fail(ctx, error)
    }
  }

  /** Answers 503; the log gets one line a second at most. Not thrown: that takes a fifth of the time of a refusal. */
  function refuse(ctx: CoreContext, error: HttpError, state: string): void {
    refusals.say(`refused ${label(ctx)}: ${state}`, '', { request: ctx })
    fail(ctx, error)
  }

  function refuseLate(ctx: CoreContext, waitedMs: number): void {
    parts.headersWithoutRoute?.(ctx) // None of the middleware has run.
    refuse(ctx, waitedTooLong, `it waited ${Math.round(waitedMs)} ms in the queue, ${pool.waiting} are waiting`)
  }

  function answerUnmatched(ctx: CoreContext): void {
    parts.headersWithoutRoute?.(ctx)
    ctx.formatOfPrefix = registry.errorFormatOf(ctx.path)
    const methods = ctx.path === '*' ? ordinaryMethods : registry.allowed(ctx.path)
    if (methods.length > 0) {
      const allow = methods.join(', ')
      if (ctx.method !== 'OPTIONS') return fail(ctx, methodNotAllowed(ctx, allow))
      ctx.setHeader('Allow', allow)
      return settle(ctx, emptyReply)
    }
    if (staticFiles === undefined) return fail(ctx, notFound(ctx.path))
    const found = staticFiles(ctx)
    if (!(found instanceof Promise)) return answerStatic(ctx, found)
    found.then(
      (reply) => answerStatic(ctx, reply),
      (error: unknown) => fail(ctx, error),
    )
  }

  function answerStatic(ctx: CoreContext, reply: StreamReply | undefined): void {
    if (reply === undefined) fail(ctx, notFound(ctx.path))
    else settle(ctx, reply)
  }

  function runAsWorker(ctx: CoreContext): void {
    ctx.holdsWorker = true
    run(ctx)
  }

  function run(ctx: CoreContext): void {
    turnEnd.beforeAction()
    ctx.running = true
    try {
      const outcome = (ctx.run as Chain)(ctx)
      if (!(outcome instanceof Promise)) return settle(ctx, outcome)
      outcome.then(
        (reply) => settleLater(ctx, reply),
        (error: unknown) => fail(ctx, error),
      )
    } catch (error) {
      fail(ctx, error)
    }
  }

  /** An answer that took a promise leaves with those of the requests that arrived together. */
  function settleLater(ctx: CoreContext, reply: Reply): void {
    if (!mayWait(ctx, reply)) return settle(ctx, reply)
    turnEnd.hold(ctx, () => send(ctx, reply, fail))
    release(ctx)
  }

  function settle(ctx: CoreContext, reply: Reply): void {
    try {
      if (reply instanceof BodyReply) responder.respondBody(ctx, reply, draining)
      else if (reply instanceof DeferredReply) restPool.park(ctx, asParked(reply))
      else if (reply instanceof UpgradeReply) reply.takeOver()
      else responder.respond(ctx, reply, draining)
    } catch (error) {
      return fail(ctx, error)
    }
    release(ctx)
    finishIfSent(ctx)
  }

  /** @param onError called when it cannot be written */
  function send(ctx: CoreContext, reply: BodyReply, onError: (ctx: CoreContext, error: unknown) => void): void {
    try {
      responder.respondBody(ctx, reply, draining)
    } catch (error) {
      return onError(ctx, error)
    }
    finishIfSent(ctx)
  }

  /**
   * Its worker has been free since it was parked. `finish` is left to the event `close`: one event may answer
   * thousands, and the last of them should not wait for the metrics and access lines of the others.
   */
  function answerParked(ctx: CoreContext, reply: ReadyReply | DeferredReply): void {
    try {
      if (reply instanceof DeferredReply) restPool.park(ctx, asParked(reply))
      else responder.respond(ctx, reply, draining)
    } catch (error) {
      fail(ctx, error)
    }
  }

  function fail(ctx: CoreContext, thrown: unknown): void {
    const { response } = ctx
    try {
      const error = toHttpError(thrown)
      report(ctx, error)
      if (response.headersSent && !response.writableEnded) throw new Error('The answer had begun when it failed')
      const reply = errorReply(ctx, error, parts.showsDetails(ctx), parts.pageForError)
      if (mayWait(ctx, reply)) turnEnd.hold(ctx, () => send(ctx, reply, cut))
      else responder.respondBody(ctx, reply, draining)
    } catch (second) {
      cut(ctx, second)
    }
    release(ctx)
    finishIfSent(ctx)
  }

  function cut(ctx: CoreContext, error: unknown): void {
    const details = { thrown: error, request: ctx, isLabelled: true }
    responseLog.error('the error could not be answered, so the connection was cut', details)
    ctx.response.destroy()
  }

  /** The operating system takes most answers as soon as they are written: no event needs to be awaited then. */
  function finishIfSent(ctx: CoreContext): void {
    if (isSent(ctx.response)) finish(ctx, true)
    else if (!ctx.closed) ctx.response.on('close', () => finishClosed(ctx))
  }

  function release(ctx: CoreContext): void {
    if (!ctx.running) return
    ctx.running = false
    if (ctx.closed) {
      leave()
      discard(ctx)
    }
    // Last: the pool starts what waits, and that may finish this request, which then leaves by itself.
    if (ctx.holdsWorker) {
      ctx.holdsWorker = false
      pool.leave()
    }
  }

  function finish(ctx: CoreContext, completed: boolean): void {
    if (ctx.closed) return
    if (pool.waiting > 0) pool.forget(ctx)
    ctx.close(completed)
    if (!ctx.running) discard(ctx) // Else its action may still read a body that has come whole.
    const { parked } = ctx
    if (parked !== undefined) restPool.left(asParked(parked))
    else if (wasCut(ctx)) cutAnswers.say(cutAnswer, '', { request: ctx, isLabelled: true })
    const endedAtMs = Date.now()
    if (ctx.counted) parts.metrics.record(ctx, parked === undefined, endedAtMs)
    accessLog?.write(ctx, endedAtMs)
    if (requestLog.debugEnabled) {
      const { sentStatus: status, durationMs } = ctx
      const message = `${label(ctx)} -> ${status} in ${durationMs.toFixed(3)} ms`
      requestLog.debug(message, { request: ctx, status, durationMs })
    }
    if (!ctx.running) leave()
    connectionOf(ctx.request.socket).ended(ctx.request)
  }

  function discard(ctx: CoreContext): void {
    ctx.discardBody()?.catch((thrown: unknown) => {
      responseLog.error("an upload's temporary files could not be removed", { thrown, request: ctx, isLabelled: true })
    })
  }

  function leave(): void {
    active -= 1
    if (active === 0 && whenIdle.length > 0) for (const resolve of whenIdle.splice(0)) resolve()
  }

  function report(ctx: CoreContext, error: HttpError | Refusal): void {
    const { cause = error } = error
    const logged = error.status >= 500 && !loggedElsewhere.has(error.code) && !(ctx.left && isAbortError(cause))
    const { status, code, message } = error
    const details = { request: ctx, isLabelled: true, status }
    if (logged) errorLog.error(message, { ...details, thrown: cause })
    else if (requestLog.debugEnabled) requestLog.debug(`${status} ${code}: ${message}`, details)
  }

  return {
    handle,
    upgrade,

    /** Makes every answer from now on the last on its connection, and ends parked replies. */
    drain: (): void => {
      draining = true
      restPool.stop()
    },

    /** Resolves once no request is being served. */
    idle: (): Promise<void> => (active === 0 ? Promise.resolve() : new Promise((resolve) => whenIdle.push(resolve))),

    /** Requests being served now: neither their answers nor their actions have ended. */
    get active(): number {
      return active
    },

    pool,
    restPool,
  }
}

/**
 * Whether an answer may wait. Bytes may not: the action may change them, or use their memory for the next answer. Nor
 * may an answer while the body of its request still arrives: `respond` ends the connection then.
 */
function mayWait(ctx: CoreContext, reply: Reply): reply is BodyReply {
  if (!(reply instanceof BodyReply) || typeof reply.body !== 'string') return false
  return !ctx.hasBody || ctx.request.complete
}

const noTarget = new HttpError(400, 'bad_request', 'The request target is neither a path nor a URL')
const cutAnswer = 'the connection ended before its answer had left whole'
const unknownExpectation = new HttpError(417, 'expectation_failed', 'Expect takes 100-continue only')

/** Errors that are logged at most once a second by others, not for each request. */
const loggedElsewhere: ReadonlySet<string> = new Set<ErrorCode>(['overloaded', 'shared_away'])

function methodNotAllowed(ctx: CoreContext, allow: string): Refusal {
  return new Refusal(405, 'method_not_allowed', `${ctx.path} takes ${allow}, not ${ctx.method}`, { Allow: allow })
}
