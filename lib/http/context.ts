/**
 * The context: what one request is to middleware, actions and views. What the client sent is in `received-request.ts`;
 * here are the route, the answer, and where the request stands. What other parts add (views, logs, sessions, streams)
 * comes from the table of features in `features.ts`.
 *
 * Surprise: every member may be taken out (`const { json, params } = ctx`), so functions are handed out bound.
 */
import type { Socket } from 'node:net'
import type { AccessEntry } from '../log/access-log.ts'
import type { ParkedReply } from './parked.ts'
import type { Match, RouteRecord } from '../routing/route.ts'
import { isSameCookie, serializeCookie, type CookieAttributes } from './cookie.ts'
import { HttpError, Refusal } from './errors.ts'
import { HeaderList } from './header-list.ts'
import { ReceivedRequest } from './received-request.ts'
import { BodyReply, emptyReply, htmlType, jsonReply, textReply, textType, toReply, type Reply } from './reply.ts'

/** A member of a feature that was asked for. A request asks for few, so a list takes less memory than an array. */
interface MadeMember {
  readonly index: number
  readonly value: unknown
  readonly next: MadeMember | undefined
}

const noNames: readonly string[] = []

export class Context extends ReceivedRequest implements AccessEntry {
  /** The record of the route that answers; undefined where none does. */
  route: RouteRecord | undefined = undefined
  /** What answers: the route's middleware and action, joined. */
  run: ((ctx: Context) => Reply | Promise<Reply>) | undefined = undefined
  /** The reply so far. What the action returns takes its place. */
  reply: Reply | undefined = undefined
  /** The status to send, 200 to 599; 0 until somebody sets one. */
  status = 0

  /** The body's bytes in the answer; 0 as long as nothing was sent. */
  sentBytes = 0
  /** Whether this request has a worker of the HTTP pool now. */
  holdsWorker = false
  /** Whether the metrics count this request. */
  counted = true
  /** Whether the route's middleware and action are at work. */
  running = false
  /** What this request waits for or has waited for, after its middleware and action. */
  parked: ParkedReply | undefined = undefined
  /** Of a WebSocket handshake: the socket, and what has arrived behind the header section. */
  upgrading: { readonly socket: Socket; readonly head: Buffer } | undefined = undefined
  /** Whether the response has ended or the client has left. */
  closed = false
  /** Whether the client left before its answer was complete. */
  left = false
  /** Whether the answer must be the last on its connection. */
  lastOnConnection = false
  /** The name of a cookie that goes out with a 500 too, since what it stands for is done: a session has been saved. */
  lastingCookie: string | undefined = undefined
  /** Whether the answer goes out as it is: a secret in a compressed page can be guessed from its length (BREACH). */
  neverCompressed = false

  #names = noNames
  #values = noNames
  #made: MadeMember | undefined = undefined
  #outgoing: HeaderList | undefined = undefined
  #params: Record<string, string> | undefined = undefined
  #state: Record<string, unknown> | undefined = undefined
  #abort: AbortController | undefined = undefined
  #aborted = false

  // ---- the route, and a place of its own ----

  /** The parameters of the route's pattern by name, decoded; an object without prototype. */
  get params(): Record<string, string> {
    if (this.#params === undefined) {
      const params = Object.create(null) as Record<string, string>
      for (let i = 0; i < this.#names.length; i++) params[this.#names[i] as string] = this.#values[i] as string
      this.#params = params
    }
    return this.#params
  }

  /** The name of the route that answers; '' where none does. */
  get routeName(): string {
    return this.route === undefined ? '' : this.route.name
  }

  /** The status that was sent; 499, as nginx has it, when the client left before there was one. */
  get sentStatus(): number {
    return this.response.headersSent ? this.response.statusCode : 499
  }

  /** Whether the client left while it waited for an event. */
  get leftWait(): boolean {
    return this.left && this.parked !== undefined && !this.response.headersSent
  }

  /** A place for what middleware hands to those behind it; an object without prototype. */
  get state(): Record<string, unknown> {
    return (this.#state ??= Object.create(null) as Record<string, unknown>)
  }

  /** Aborts when the client leaves before its answer is complete, and when a wait ends without what it waited for. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.left || this.#aborted) this.#abort.abort()
    }
    return this.#abort.signal
  }

  // ---- the answer ----

  /** Replies with a value as JSON. Throws TypeError for what JSON cannot hold. */
  get json(): (value: unknown, status?: number) => Reply {
    return (value, status) => answer(this, jsonReply(value), status)
  }

  /** Replies with HTML, as it is. Throws TypeError for what is no string. */
  get html(): (text: string, status?: number) => Reply {
    return (text, status) => answer(this, textReply(htmlType, text), status)
  }

  /** Replies with plain text. Throws TypeError for what is no string. */
  get text(): (text: string, status?: number) => Reply {
    return (text, status) => answer(this, textReply(textType, text), status)
  }

  /** Replies without a body, 204 unless said otherwise. */
  get empty(): (status?: number) => Reply {
    return (status = 204) => answer(this, emptyReply, status)
  }

  /**
   * Sends the client elsewhere, 302 unless said otherwise. What a header field cannot hold is percent-encoded.
   * @throws RangeError when the status is none of 301, 302, 303, 307, 308
   */
  get redirect(): (url: string, status?: number) => Reply {
    return (url, status = 302) => {
      if (![301, 302, 303, 307, 308].includes(status)) {
        throw new RangeError(`A redirect has status 301, 302, 303, 307 or 308: it is ${status}`)
      }
      this.setHeader('Location', url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURI))
      return answer(this, new BodyReply('', ''), status)
    }
  }

  /** Throws an HttpError; its message reaches the client when the status is below 500. */
  get fail(): (status: number, code: string, message: string) => never {
    return (status, code, message) => {
      throw new HttpError(status, code, message)
    }
  }

  /** Sets a header field of the answer in place of those of its name. Throws TypeError as `HeaderList.set` does. */
  get setHeader(): (name: string, value: string | number | readonly string[]) => void {
    return (name, value) => this.outgoing.set(name, value)
  }

  /**
   * Sets a cookie: path `/`, HttpOnly, SameSite=Lax and, on TLS, Secure, unless `attributes` say otherwise. Of one
   * name, domain and path the last one counts.
   * @throws TypeError or RangeError for what no cookie may be (see `cookie.ts`)
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

  /** The header fields set so far, without making a list when there is none. */
  get outgoingIfAny(): HeaderList | undefined {
    return this.#outgoing
  }

  // ---- for the server ----

  /** Notes which route answers, and the parameters of its pattern. */
  matched(match: Match<(ctx: Context) => Reply | Promise<Reply>>): void {
    this.route = match.route.record
    this.run = match.route.target
    this.#names = match.route.pattern.names
    this.#values = match.values
  }

  /** The reply to what an action returned: undefined leaves what was already replied, or an empty 204. */
  replyOf(value: unknown): Reply {
    this.reply = value === undefined ? (this.reply ?? emptyReply) : toReply(value)
    return this.reply
  }

  /** The reply so far. Throws HttpError 404 when nobody has answered. */
  currentReply(): Reply {
    if (this.reply === undefined) throw new HttpError(404, 'not_found', notFoundMessage(this.path))
    return this.reply
  }

  /** A member of a feature: made when it is first asked for, then kept. `index` is the feature member's own number. */
  memo(index: number, make: (ctx: Context) => unknown): unknown {
    for (let made = this.#made; made !== undefined; made = made.next) if (made.index === index) return made.value
    const value = make(this)
    this.#made = { index, value, next: this.#made }
    return value
  }

  /** Whether the client is known to have left, or the answer has ended: nothing that is written now arrives. */
  get gone(): boolean {
    return this.closed || !this.request.socket.writable
  }

  /** Aborts `signal`, though the client is there: its wait is over. */
  abort(): void {
    this.#aborted = true
    this.#abort?.abort()
  }

  /**
   * To be called when the response has ended or the client has left: lets go of what the request held.
   * @returns what `discardBody` does
   */
  close(completed: boolean): Promise<void> | undefined {
    this.closed = true
    if (!completed) {
      this.left = true
      this.#abort?.abort()
    }
    return this.discardBody()
  }
}

/** What a request is refused with for whose path there is neither a route nor a file. */
export function notFound(path: string): Refusal {
  return new Refusal(404, 'not_found', notFoundMessage(path))
}

function notFoundMessage(path: string): string {
  return `Nothing is here: ${path}`
}

function answer(ctx: Context, reply: Reply, status: number | undefined): Reply {
  if (status !== undefined) ctx.status = status
  ctx.reply = reply
  return reply
}
