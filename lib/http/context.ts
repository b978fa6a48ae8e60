/**
 * The context: what one request is to middleware, actions and views.
 *
 * Nothing is parsed before it is asked for, and every member may be taken out (`const { json, params } = ctx`): functions
 * are handed out bound. What other parts add (views, logs, later sessions and streams) comes from the table of features
 * in `features.ts`.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { AccessEntry } from '../log/access-log.ts'
import type { ParkedReply } from '../pool/parked.ts'
import type { Match, RouteRecord } from '../routing/route.ts'
import { Body } from './body.ts'
import type { ClientAddress, ClientInfo } from './client-address.ts'
import { parseCookies, serializeCookie, type CookieAttributes } from './cookie.ts'
import { HttpError } from './errors.ts'
import type { Form } from './form.ts'
import { HeaderList } from './header-list.ts'
import { BodyReply, emptyReply, htmlType, jsonReply, textReply, textType, toReply, type Reply } from './reply.ts'
import { isRequestId } from './request-id.ts'

/** What every context of one server shares. */
export interface ContextServices {
  /** The most bytes that a body may have. */
  readonly bodyLimitBytes: number
  readonly clientAddress: ClientAddress
  readonly makeRequestId: () => string
}

/** A member of a feature that was asked for. A request asks for few, so a list takes less memory than an array. */
interface MadeMember {
  readonly index: number
  readonly value: unknown
  readonly next: MadeMember | undefined
}

const noNames: readonly string[] = []

export class Context implements AccessEntry {
  /** Of the server that this context belongs to; on the prototype, see `features.ts`. */
  declare readonly services: ContextServices

  /** The raw request and response, for the server's own parts. An application has no use for them. */
  readonly request: IncomingMessage
  readonly response: ServerResponse

  /** The request method, upper case as sent. */
  readonly method: string
  /** The path as sent: without the query, not decoded. */
  readonly path: string
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
  /** Whether the client asked to be told to go on before it sends the body (`Expect: 100-continue`). */
  expectsContinue = false
  /** Whether the answer must be the last on its connection. */
  lastOnConnection = false
  /** The name of a cookie that goes out with a 500 too, since what it stands for is done: a session has been saved. */
  lastingCookie: string | undefined = undefined
  /** Whether the answer goes out as it is: a secret in a compressed page can be guessed from its length (BREACH). */
  neverCompressed = false
  /** The X-Request-Id that the client sent, where it is a valid one. */
  givenId: string | undefined = undefined
  /** The Host header field as sent, the last one when there are several, and how many there are. */
  hostField: string | undefined = undefined
  hostCount = 0
  /** Whether the request announces a body. */
  hasBody = false

  readonly #queryAt: number
  readonly #startedAt = performance.now()
  #names = noNames
  #values = noNames
  #made: MadeMember | undefined = undefined
  #outgoing: HeaderList | undefined = undefined
  #body: Body | undefined = undefined
  #query: URLSearchParams | undefined = undefined
  #params: Record<string, string> | undefined = undefined
  #headers: Record<string, string> | undefined = undefined
  #cookies: Record<string, string> | undefined = undefined
  #state: Record<string, unknown> | undefined = undefined
  #client: ClientInfo | undefined = undefined
  #madeId: string | undefined = undefined
  #abort: AbortController | undefined = undefined
  #aborted = false

  /** Takes a request whose target is in origin form: `request.url` begins with '/'. */
  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    this.method = request.method as string
    const target = request.url as string
    this.#queryAt = target.indexOf('?')
    this.path = this.#queryAt < 0 ? target : target.slice(0, this.#queryAt)
    this.#scan(request.rawHeaders)
  }

  // ---- the request ----

  /** The query, decoded. */
  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.rawQuery))
  }

  /** The query as sent, with its `?`; '' when there is none. */
  get rawQuery(): string {
    return this.#queryAt < 0 ? '' : (this.request.url as string).slice(this.#queryAt)
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

  /** The request's header fields by lower-case name; an object without prototype. */
  get headers(): Record<string, string> {
    return (this.#headers ??= Object.assign(Object.create(null), this.request.headers) as Record<string, string>)
  }

  /** One header field of the request, by its lower-case name. */
  header(name: string): string | undefined {
    return this.request.headers[name] as string | undefined
  }

  /** The cookies by name; an object without prototype. */
  get cookies(): Record<string, string> {
    return (this.#cookies ??= parseCookies(this.request.headers.cookie))
  }

  /** The client's address: the peer's, or what trusted proxies say of it. */
  get ip(): string {
    return this.#resolved.ip
  }

  /** Whether the client speaks TLS, to this server or to a trusted proxy. */
  get secure(): boolean {
    const proto = this.#resolved.proto
    return proto === undefined ? (this.request.socket as TLSSocket).encrypted === true : proto === 'https'
  }

  /** The host, with its port when it has one, that the client asked for; '' when it named none. */
  get host(): string {
    return this.#resolved.host ?? this.request.headers.host ?? ''
  }

  /** The bytes of the request's body: those that were read, or as announced where nobody read them. */
  get receivedBytes(): number {
    if (!this.hasBody) return 0
    return this.#body?.received ?? Number(this.header('content-length') ?? 0)
  }

  /** The HTTP version: `1.0` or `1.1`. */
  get httpVersion(): string {
    return this.request.httpVersion
  }

  /** The name of the route that answers; '' where none does. */
  get routeName(): string {
    return this.route === undefined ? '' : this.route.name
  }

  /** The status that was sent; 499, as nginx has it, when the client left before there was one. */
  get sentStatus(): number {
    return this.response.headersSent ? this.response.statusCode : 499
  }

  /** Milliseconds since the request's header section was read. */
  get durationMs(): number {
    return performance.now() - this.#startedAt
  }

  /** The request id: what the client sent, when it is 8 to 128 of `A-Za-z0-9_.-`, else made now. It is sent back. */
  get id(): string {
    return this.givenId ?? (this.#madeId ??= this.services.makeRequestId())
  }

  /** The id to send back: undefined when there is none yet. */
  get idToSend(): string | undefined {
    return this.givenId ?? this.#madeId
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

  /** The body, for the server's own parts. */
  get body(): Body {
    return (this.#body ??= new Body(this.request, {
      maxBytes: this.services.bodyLimitBytes,
      onStart: () => {
        if (this.expectsContinue && !this.response.headersSent) this.response.writeContinue()
      },
    }))
  }

  /** Reads the body as bytes. Like the three below it reads once and may be called again; 413 when it is too large. */
  get readBytes(): () => Promise<Buffer> {
    return () => this.body.bytes()
  }

  /** Reads the body as text. */
  get readText(): () => Promise<string> {
    return () => this.body.text()
  }

  /** Reads the body as JSON; 400 when it is none. */
  get readJson(): () => Promise<unknown> {
    return () => this.body.json()
  }

  /** Reads a form, urlencoded or multipart; 415 when the body is of another type. */
  get readForm(): () => Promise<Form> {
    return () => this.body.form()
  }

  // ---- the answer ----

  /** Replies with a value as JSON. Throws TypeError for what JSON cannot hold. */
  get json(): (value: unknown, status?: number) => Reply {
    return (value, status) => this.#answer(jsonReply(value), status)
  }

  /** Replies with HTML, as it is. Throws TypeError for what is no string. */
  get html(): (text: string, status?: number) => Reply {
    return (text, status) => this.#answer(textReply(htmlType, text), status)
  }

  /** Replies with plain text. Throws TypeError for what is no string. */
  get text(): (text: string, status?: number) => Reply {
    return (text, status) => this.#answer(textReply(textType, text), status)
  }

  /** Replies without a body, 204 unless said otherwise. */
  get empty(): (status?: number) => Reply {
    return (status = 204) => this.#answer(emptyReply, status)
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
      return this.#answer(new BodyReply('', ''), status)
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
   * Sets a cookie: path `/`, HttpOnly, SameSite=Lax and, on TLS, Secure, unless `attributes` say otherwise.
   * @throws TypeError or RangeError for what no cookie may be (see `cookie.ts`)
   */
  get setCookie(): (name: string, value: string, attributes?: CookieAttributes) => void {
    return (name, value, attributes = {}) =>
      this.outgoing.append('Set-Cookie', serializeCookie(name, value, attributes, { secure: this.secure }))
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
    if (this.reply === undefined) throw notFound(this.path)
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
   * To be called when the response has ended or the client has left: lets go of what the request held, and reads and
   * throws away what is left of a body that was read in part, so that the connection can serve on or end politely.
   * @returns what `Body.dispose` does
   */
  close(completed: boolean): Promise<void> | undefined {
    this.closed = true
    if (!completed) {
      this.left = true
      this.#abort?.abort()
    }
    const disposal = this.#body?.dispose()
    if (this.#body !== undefined) this.request.resume()
    return disposal
  }

  get #resolved(): ClientInfo {
    return (this.#client ??= this.services.clientAddress.resolve(this.request.socket.remoteAddress ?? '', (name) =>
      this.header(name),
    ))
  }

  #answer(reply: Reply, status: number | undefined): Reply {
    if (status !== undefined) this.status = status
    this.reply = reply
    return reply
  }

  /** One look at the raw fields, without building the headers object that most requests never need. */
  #scan(raw: readonly string[]): void {
    for (let at = 0; at < raw.length; at += 2) {
      const name = raw[at] as string
      switch (name.length) {
        case 4:
          if (name.toLowerCase() === 'host') {
            this.hostField = raw[at + 1]
            this.hostCount += 1
          }
          break
        case 12:
          if (name.toLowerCase() === 'x-request-id' && isRequestId(raw[at + 1] as string)) this.givenId = raw[at + 1]
          break
        case 14:
          if (name.toLowerCase() === 'content-length' && raw[at + 1] !== '0') this.hasBody = true
          break
        case 17:
          if (name.toLowerCase() === 'transfer-encoding') this.hasBody = true
      }
    }
  }
}

/** The error for a path that nobody answers. */
export function notFound(path: string): HttpError {
  return new HttpError(404, 'not_found', `Nothing is here: ${path}`)
}
