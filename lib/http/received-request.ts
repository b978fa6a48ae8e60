/**
 * The received request: the part of a context that reads what the client sent. `context.ts` extends it.
 *
 * Nothing is parsed before it is used. The constructor reads the raw header fields once, for the few that every request
 * needs.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { TLSSocket } from 'node:tls'
import { Body } from './body.ts'
import type { ClientAddress, ClientInfo } from './client-address.ts'
import { parseCookies } from './cookie.ts'
import type { Form } from './form.ts'
import type { ReadingWait } from './read-chunks.ts'
import { fieldOf, fieldsOf } from './request-fields.ts'
import type { ExplainJson } from './json.ts'

/** Shared by the requests of one server. */
export interface RequestServices {
  /** The most bytes that a body may have. */
  readonly bodyLimitBytes: number
  /** The folder of uploads while their requests run; the system's temporary folder unless given. */
  readonly temporaryFolder?: string
  readonly clientAddress: ClientAddress
  /** Explains a body that is not JSON; see `parseJson`. */
  readonly explainJson?: ExplainJson
}

/** The request that a context is about. */
export class ReceivedRequest {
  /** On the prototype, see `features.ts`. */
  declare readonly services: RequestServices

  /** Node's request and response, for the server's own parts. */
  readonly request: IncomingMessage
  readonly response: ServerResponse

  /** The request method, upper case as sent. */
  readonly method: string
  /** The path as sent: without the query, not decoded. */
  readonly path: string
  /** Whether the client waits for `100 Continue` before it sends the body (`Expect: 100-continue`). */
  expectsContinue = false
  /** The X-Request-Id that the client sent, if it is valid. */
  givenId: string | undefined = undefined
  /** The Host field as sent, the last one when there are several, and their number. */
  hostField: string | undefined = undefined
  hostCount = 0
  /** Whether the request announces a body. */
  hasBody = false

  readonly #queryAt: number
  /** When its header section had been read, by `performance.now()`. */
  readonly startedAt = performance.now()
  #body: Body | undefined = undefined
  #query: URLSearchParams | undefined = undefined
  #headers: Record<string, string> | undefined = undefined
  #cookies: Record<string, string> | undefined = undefined
  #client: ClientInfo | undefined = undefined
  #madeId: string | undefined = undefined

  /** @param request with a target in origin form: `request.url` begins with '/' */
  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    this.method = request.method as string
    const target = request.url as string
    this.#queryAt = target.indexOf('?')
    this.path = this.#queryAt < 0 ? target : target.slice(0, this.#queryAt)
    scan(this, request.rawHeaders)
  }

  /** The query, decoded. */
  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.rawQuery))
  }

  /** The query as sent, with its `?`; '' when there is none. */
  get rawQuery(): string {
    return this.#queryAt < 0 ? '' : (this.request.url as string).slice(this.#queryAt)
  }

  /** The request's header fields by lower-case name; an object without prototype. */
  get headers(): Record<string, string> {
    return (this.#headers ??= fieldsOf(this.request.headers))
  }

  /** One header field of the request, by its lower-case name. */
  header(name: string): string | undefined {
    return fieldOf(this.request, name)
  }

  /** The cookies by name; an object without prototype. */
  get cookies(): Record<string, string> {
    return (this.#cookies ??= parseCookies(this.header('cookie')))
  }

  /** The client's address: the peer's, or the one that trusted proxies state. */
  get ip(): string {
    return ReceivedRequest.#clientOf(this).ip
  }

  /** Whether the client speaks TLS, to this server or to a trusted proxy. */
  get secure(): boolean {
    const proto = ReceivedRequest.#clientOf(this).proto
    return proto === undefined ? (this.request.socket as TLSSocket).encrypted === true : proto === 'https'
  }

  /** The host that the client asked for, with its port when it has one; '' without a Host field. */
  get host(): string {
    return ReceivedRequest.#clientOf(this).host ?? this.header('host') ?? ''
  }

  /** The bytes of the request's body: those that were read; those announced when none were. */
  get receivedBytes(): number {
    if (!this.hasBody) return 0
    return this.#body?.received ?? Number(this.header('content-length') ?? 0)
  }

  /** The HTTP version: `1.0` or `1.1`. */
  get httpVersion(): string {
    return this.request.httpVersion
  }

  /** Milliseconds since the request's header section was read. */
  get durationMs(): number {
    return performance.now() - this.startedAt
  }

  /** The request id: the client's when it is 8 to 128 of `A-Za-z0-9_.-`, else a new one. It is sent back. */
  get id(): string {
    return this.givenId ?? (this.#madeId ??= randomUUID())
  }

  /** The id to send back: undefined when there is none yet. */
  get idToSend(): string | undefined {
    return this.givenId ?? this.#madeId
  }

  /** The most bytes that the body may have. */
  get bodyLimitBytes(): number {
    return this.services.bodyLimitBytes
  }

  /** The body, for the server's own parts. */
  get body(): Body {
    return (this.#body ??= new Body(this.request, {
      maxBytes: this.bodyLimitBytes,
      temporaryFolder: this.services.temporaryFolder,
      explainJson: this.services.explainJson,
      onStart: () => {
        if (!this.expectsContinue || this.response.headersSent) return
        this.expectsContinue = false
        this.response.writeContinue()
      },
      onWait: () => this.beginReading(),
    }))
  }

  /** Called before a body is read that has not come whole. Throws HttpError 503 when too many bodies are arriving. */
  protected beginReading(): ReadingWait | undefined {
    return undefined
  }

  /** Reads the body as bytes. It and the three below read once and may be called again; 413 when it is too large. */
  get readBytes(): () => Promise<Buffer> {
    return () => this.body.bytes()
  }

  /** Reads the body as text. */
  get readText(): () => Promise<string> {
    return () => this.body.text()
  }

  /** Reads the body as JSON; 400 when it is not JSON. */
  get readJson(): () => Promise<unknown> {
    return () => this.body.json()
  }

  /** Reads a form, urlencoded or multipart; 415 when the body is of another type. */
  get readForm(): () => Promise<Form> {
    return () => this.body.form()
  }

  /** Ends a reading of a body that has not come whole. */
  protected stopReading(): void {
    this.#body?.stop()
  }

  /**
   * Discards the body, and what its client still sends of it, so that the connection can be reused or closed without a
   * reset. Call it when the request has been answered and its action has ended.
   * @returns as `Body.dispose`
   */
  discardBody(): Promise<void> | undefined {
    if (this.#body === undefined && !this.hasBody) return undefined
    const disposal = this.body.dispose() // Also when nothing was read: a later read rejects then.
    this.request.resume()
    return disposal
  }

  /** The client as trusted proxies state it. Static: a private method would add a brand to every request. */
  static #clientOf(received: ReceivedRequest): ClientInfo {
    return (received.#client ??= received.services.clientAddress.resolve(
      received.request.socket.remoteAddress ?? '',
      (name) => received.header(name),
    ))
  }
}

/**
 * Reads one field of a form body, for code that must leave other bodies to the action.
 * @returns the values in the order sent; undefined, at once, when the request has no form body. Rejects with the
 *   HttpError of a body that cannot be read
 */
export function readFormField(received: ReceivedRequest, name: string): Promise<readonly string[]> | undefined {
  if (!received.hasBody || !received.body.isForm) return undefined
  return received.readForm().then((form) => form.getAll(name))
}

/** Whether an `X-Request-Id` is used: 8 to 128 of `A-Za-z0-9_.-`. */
export function isRequestId(text: string): boolean {
  return /^[A-Za-z0-9_.-]{8,128}$/.test(text)
}

/** Reads the raw fields once, without building the headers object that most requests never need. */
function scan(received: ReceivedRequest, raw: readonly string[]): void {
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'host') {
          received.hostField = raw[at + 1]
          received.hostCount += 1
        }
        break
      case 12:
        if (name.toLowerCase() === 'x-request-id' && isRequestId(raw[at + 1] as string)) received.givenId = raw[at + 1]
        break
      case 14:
        if (name.toLowerCase() === 'content-length' && raw[at + 1] !== '0') received.hasBody = true
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') received.hasBody = true
    }
  }
}
