/**
 * The context of a request: one object that the server, middleware and actions share. The received request is in
 * `received-request.ts`; this file has the route, the response, and the state of the request. Features (`features.ts`)
 * add members for sessions, views, logs and events.
 *
 * Any member may be destructured (`const { json, params } = ctx`), so function members are getters that return bound
 * functions.
 */
import type { Socket } from 'node:net'
import type { EndedRequest } from '../base/ports.ts'
import type { ErrorFormat, Match, RouteRecord, RouteTarget, UrlBuilder } from '../routing/route.ts'
import { isSameCookie, serializeCookie, type CookieAttributes } from './cookie.ts'
import { HttpError, Refusal } from './errors.ts'
import { HeaderList } from './header-list.ts'
import type { ReadingWait } from './read-chunks.ts'
import { ReceivedRequest, type RequestServices } from './received-request.ts'
import {
  emptyReply,
  htmlType,
  jsonReply,
  RedirectReply,
  textReply,
  textType,
  type DeferredReply,
  type Reply,
} from './reply.ts'

/** Called while requests wait for their clients to send a body; see `core/body-waits.ts`. */
export interface BodyWaiting {
  /**
   * Call when a request starts to read a body that has not fully arrived.
   * @throws HttpError 503 when the bodies of other requests take too much memory
   */
  begin(ctx: CoreContext): ReadingWait
}

/** Shared by the contexts of one server. */
export interface ContextServices extends RequestServices {
  /** Set by the server; without it, waiting for a body has no effect on others. */
  bodyWaits?: BodyWaiting
  /** Whether the client has a copy of this response, by its conditions and the ETag or Last-Modified of `ctx`. */
  readonly isUnmodified?: (ctx: CoreContext) => boolean
  /** Reports a mistake of an action. The message says how to fix it. */
  readonly misuse?: (ctx: CoreContext, message: string) => void
}

/** A feature member that this request has used. A request uses few, so a linked list takes less memory. */
interface MadeMember {
  readonly index: number
  readonly value: unknown
  readonly next: MadeMember | undefined
}

const noNames: readonly string[] = []

/** Creates `ctx.state`. V8 turns `Object.create(null)` into a hash table: five times as slow for a few members. */
const State = function () {} as unknown as new () => Record<string, unknown> // No other way satisfies the compiler.
State.prototype = Object.freeze(Object.create(null))

/** Created once per request, by the class that `createContextClass` derives for a server. */
export class CoreContext extends ReceivedRequest implements EndedRequest {
  declare readonly services: ContextServices
  /** Added by `routing/feature.ts`. */
  declare readonly url: UrlBuilder

  /** The record of the matched route; undefined without a match. */
  route: RouteRecord | undefined = undefined
  /** The route's middleware and action, composed. */
  run: ((ctx: CoreContext) => Reply | Promise<Reply>) | undefined = undefined
  /** The reply so far. The action's return value replaces it. */
  reply: Reply | undefined = undefined
  /** The last redirect. */
  redirection: RedirectReply | undefined = undefined
  /** The status to send, 200 to 599; 0 until one is set. */
  status = 0

  /** The bytes of the response body; 0 until it is sent. */
  sentBytes = 0
  /** Whether this request currently holds a worker of the HTTP pool. */
  holdsWorker = false
  /** Whether the metrics count this request. */
  counted = true
  /** Where this request is among the running ones; -1 unless the route's middleware and action run. */
  runningSlot = -1
  /** The reply that waits or waited in the REST pool, after middleware and action returned. */
  parked: DeferredReply | undefined = undefined
  /** For a WebSocket handshake: the socket, and the bytes that arrived after the header section. */
  upgrading: { readonly socket: Socket; readonly head: Buffer } | undefined = undefined
  /** Whether the response has ended or the client has disconnected. */
  closed = false
  /** Whether the client disconnected before the response was complete. */
  left = false
  /** An error in the request line or header section that Node's parser accepts: the request is refused with it. */
  flaw: HttpError | undefined = undefined
  /** The error format of a path below a prefix of routes that no route matches. */
  formatOfPrefix: ErrorFormat = 'auto'
  /** Whether this client must not find out that the path exists (`admin.allow`). */
  shutOut = false
  /** Whether the response must be the last on its connection. */
  lastOnConnection = false
  /** The name of a cookie that is sent even with a 500, since its session has been saved. */
  lastingCookie: string | undefined = undefined
  /** Never compress the response: it contains a secret, which could be guessed from the compressed length (BREACH). */
  neverCompressed = false

  #names = noNames
  #values = noNames
  #made: MadeMember | undefined = undefined
  #outgoing: HeaderList | undefined = undefined
  #params: Record<string, string> | undefined = undefined
  #state: Record<string, unknown> | undefined = undefined
  #abort: AbortController | undefined = undefined
  #aborted = false

  // ---- the route and the state ----

  /** Whether the route's middleware and action are running. */
  get running(): boolean {
    return this.runningSlot >= 0
  }

  /** The parameters of the route's pattern by name, decoded; an object without prototype. */
  get params(): Record<string, string> {
    if (this.#params === undefined) {
      const params = Object.create(null) as Record<string, string>
      for (let i = 0; i < this.#names.length; i++) params[this.#names[i] as string] = this.#values[i] as string
      this.#params = params
    }
    return this.#params
  }

  /** The error format: the route's, else the format of the routes below the same prefix. */
  get errorFormat(): ErrorFormat {
    return this.route === undefined ? this.formatOfPrefix : (this.route.error_format ?? 'auto')
  }

  /** Whether the path is one of the panel, which has its own error pages, for a client that may reach the panel. */
  get isOfPanel(): boolean {
    return this.path.startsWith('/svc-') && !this.shutOut
  }

  override get bodyLimitBytes(): number {
    const kb = this.route?.body_limit_kb
    return kb === undefined ? super.bodyLimitBytes : kb * 1024
  }

  /** The maximum milliseconds for this request to arrive, if its route sets them. */
  get requestTimeoutMs(): number | undefined {
    const seconds = this.route?.request_timeout_s
    return seconds === undefined ? undefined : seconds * 1000
  }

  /** The name of the matched route; '' without a match. */
  get routeName(): string {
    return this.route === undefined ? '' : this.route.name
  }

  /** The sent status; 499, as in nginx, if the client disconnected before. */
  get sentStatus(): number {
    return this.response.headersSent ? this.response.statusCode : 499
  }

  /** Whether the client disconnected while waiting for an event. */
  get leftWait(): boolean {
    return this.left && this.parked !== undefined && !this.response.headersSent
  }

  /** Values that middleware passes to later middleware and to the action; an object that inherits nothing. */
  get state(): Record<string, unknown> {
    return (this.#state ??= new State())
  }

  /**
   * Whether the request is pointless once the client has ended its side of the connection: it waits for an event, its
   * action watches for a disconnect, or it is a handshake. Every other request is still answered.
   */
  get needsClient(): boolean {
    if (this.parked !== undefined) return this.parked.needsClient
    return this.#abort !== undefined || this.upgrading !== undefined
  }

  /** Aborts when the client disconnects before the response is complete, and when a wait ends without its event. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.left || this.#aborted) this.#abort.abort()
      // The client has already ended its side, which would no longer be noticed.
      else if (!this.closed && this.request.socket.readableEnded) this.request.socket.destroy()
    }
    return this.#abort.signal
  }

  // ---- the response ----

  /** Replies with a value as JSON. Throws TypeError for a value that JSON cannot hold. */
  get json(): (value: unknown, status?: number) => Reply {
    return (value, status) => answer(this, jsonReply(value), status)
  }

  /** Replies with HTML, unescaped. Throws TypeError if it is not a string. */
  get html(): (text: string, status?: number) => Reply {
    return (text, status) => answer(this, textReply(htmlType, text), status)
  }

  /** Replies with plain text. Throws TypeError if it is not a string. */
  get text(): (text: string, status?: number) => Reply {
    return (text, status) => answer(this, textReply(textType, text), status)
  }

  /** Replies without a body; 204 unless `status` is given. */
  get empty(): (status?: number) => Reply {
    return (status = 204) => answer(this, emptyReply, status)
  }

  /**
   * Redirects the client to a URL, without adding the prefix, or to a named route; 302 unless `status` is given.
   * Characters not allowed in a header field are percent-encoded.
   * @throws RangeError if the status is not 301, 302, 303, 307 or 308; the errors of `url` for a route
   */
  get redirect(): (to: string | RouteTarget, status?: number) => Reply {
    return (to, status = 302) => {
      if (![301, 302, 303, 307, 308].includes(status)) {
        throw new RangeError(`A redirect has status 301, 302, 303, 307 or 308: it is ${status}`)
      }
      const url = typeof to === 'string' ? to : pathOfTarget(this, to)
      this.setHeader('Location', url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURI))
      this.redirection = new RedirectReply(status)
      return answer(this, this.redirection, status)
    }
  }

  /** Throws an HttpError. Its message is sent to the client if the status is below 500. */
  get fail(): (status: number, code?: string, message?: string) => never {
    return (status, code, message) => {
      throw new HttpError(status, code, message)
    }
  }

  /**
   * Sets a response header field, replacing fields of that name. A Content-Length is used for a stream. Throws
   * TypeError as `HeaderList.set` does.
   */
  get setHeader(): (name: string, value: string | number | readonly string[]) => void {
    return (name, value) => this.outgoing.set(name, value)
  }

  /**
   * Sets a cookie: path `/`, HttpOnly, SameSite=Lax and, on TLS, Secure, unless `attributes` differ. It replaces an
   * earlier cookie of the same name, domain and path.
   * @throws TypeError for an invalid cookie (see `cookie.ts`)
   */
  get setCookie(): (name: string, value: string, attributes?: CookieAttributes) => void {
    return (name, value, attributes = {}) => {
      const cookie = serializeCookie(name, value, attributes, { secure: this.secure })
      this.outgoing.append('Set-Cookie', cookie, (earlier) => isSameCookie(earlier, cookie))
    }
  }

  /** The header fields set so far. */
  get outgoing(): HeaderList {
    return (this.#outgoing ??= new HeaderList())
  }

  /** The header fields set so far; undefined if there are none, so that no list is created. */
  get outgoingIfAny(): HeaderList | undefined {
    return this.#outgoing
  }

  // ---- for the server ----

  /** Sets the matched route and the parameters of its pattern. */
  matched(match: Match<(ctx: CoreContext) => Reply | Promise<Reply>>): void {
    this.route = match.route.record
    this.run = match.route.target
    this.#names = match.route.pattern.names
    this.#values = match.values
  }

  /** Whether the reply, a 200 of the application, is answered with 304 since the client has it. */
  get isUnmodified(): boolean {
    return this.#outgoing?.hasValidator === true && this.services.isUnmodified?.(this) === true
  }

  /** Returns the reply so far. Throws HttpError 404 if there is none. */
  currentReply(): Reply {
    if (this.reply === undefined) throw new HttpError(404, 'not_found', notFoundMessage(this.path))
    return this.reply
  }

  /** Returns the value of a feature member, created on first use. `index` is the number of that member. */
  memo(index: number, make: (ctx: CoreContext) => unknown): unknown {
    for (let made = this.#made; made !== undefined; made = made.next) if (made.index === index) return made.value
    const value = make(this)
    this.#made = { index, value, next: this.#made }
    return value
  }

  /** Whether the client has disconnected or the response has ended: nothing written now would arrive. */
  get gone(): boolean {
    return this.closed || !this.request.socket.writable
  }

  /** Aborts `signal` although the client is still connected: its wait is over. */
  abort(): void {
    this.#aborted = true
    this.#abort?.abort()
  }

  protected override beginReading(): ReadingWait | undefined {
    return this.services.bodyWaits?.begin(this)
  }

  /** Call when the response has ended or the client has disconnected. Ends a read, and aborts `signal`. */
  close(completed: boolean): void {
    this.closed = true
    if (!completed) {
      this.left = true
      this.#abort?.abort()
    }
    this.stopReading()
  }
}

/** The refusal of a request whose path matches neither a route nor a file. */
export function notFound(path: string): Refusal {
  return new Refusal(404, 'not_found', notFoundMessage(path))
}

function notFoundMessage(path: string): string {
  return `Nothing is here: ${path}`
}

function answer(ctx: CoreContext, reply: Reply, status: number | undefined): Reply {
  if (status !== undefined) ctx.status = status
  ctx.reply = reply
  return reply
}

/** Untyped code may redirect to anything. */
function pathOfTarget(ctx: CoreContext, target: unknown): string {
  const { route, params } = (target ?? {}) as Partial<RouteTarget>
  if (typeof route !== 'string') throw new TypeError('A redirect goes to a URL, or to a route: { route, params }')
  return ctx.url(route, params)
}
