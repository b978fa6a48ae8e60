/**
 * What a client sent: the half of a context that reads the request. `context.ts` makes the rest of it.
 *
 * Nothing is parsed before it is asked for. The raw header fields are looked at once, for the few that every request is
 * asked about.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { TLSSocket } from 'node:tls'
import { Body } from './body.ts'
import type { ClientAddress, ClientInfo } from './client-address.ts'
import { parseCookies } from './cookie.ts'
import type { Form } from './form.ts'
import type { HeaderSections } from '../core/header-section.ts'
import type { ExplainJson } from './json.ts'
import { fieldOf, fieldsOf } from './request-fields.ts'
import { isRequestId } from './request-id.ts'

/** What every request of one server shares. */
export interface RequestServices {
  /** The most bytes that a body may have. */
  readonly bodyLimitBytes: number
  /** Where uploads lie while their requests run; the system's folder unless given. */
  readonly temporaryFolder?: string
  readonly clientAddress: ClientAddress
  /** Explains a body that is no JSON; see `parseJson`. */
  readonly explainJson?: ExplainJson
  readonly makeRequestId: () => string
  /** The header sections of this server; the first answer makes them. */
  headerSections?: HeaderSections
}

export class ReceivedRequest {
  /** Of the server that this request came to; on the prototype, see `features.ts`. */
  declare readonly services: RequestServices

  /** The raw request and response, for the server's own parts. An application has no use for them. */
  readonly request: IncomingMessage
  readonly response: ServerResponse

  /** The request method, upper case as sent. */
  readonly method: string
  /** The path as sent: without the query, not decoded. */
  readonly path: string
  /** Whether the client asked to be told to go on before it sends the body (`Expect: 100-continue`). */
  expectsContinue = false
  /** The X-Request-Id that the client sent, where it is a valid one. */
  givenId: string | undefined = undefined
  /** The Host header field as sent, the last one when there are several, and how many there are. */
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

  /** Takes a request whose target is in origin form: `request.url` begins with '/'. */
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
    return fieldOf(this.request.headers, name)
  }

  /** The cookies by name; an object without prototype. */
  get cookies(): Record<string, string> {
    return (this.#cookies ??= parseCookies(this.header('cookie')))
  }

  /** The client's address: the peer's, or what trusted proxies say of it. */
  get ip(): string {
    return ReceivedRequest.#clientOf(this).ip
  }

  /** Whether the client speaks TLS, to this server or to a trusted proxy. */
  get secure(): boolean {
    const proto = ReceivedRequest.#clientOf(this).proto
    return proto === undefined ? (this.request.socket as TLSSocket).encrypted === true : proto === 'https'
  }

  /** The host, with its port when it has one, that the client asked for; '' when it named none. */
  get host(): string {
    return ReceivedRequest.#clientOf(this).host ?? this.header('host') ?? ''
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

  /** Milliseconds since the request's header section was read. */
  get durationMs(): number {
    return performance.now() - this.startedAt
  }

  /** The request id: what the client sent, when it is 8 to 128 of `A-Za-z0-9_.-`, else made now. It is sent back. */
  get id(): string {
    return this.givenId ?? (this.#madeId ??= this.services.makeRequestId())
  }

  /** The id to send back: undefined when there is none yet. */
  get idToSend(): string | undefined {
    return this.givenId ?? this.#madeId
  }

  /** The body, for the server's own parts. */
  get body(): Body {
    return (this.#body ??= new Body(this.request, {
      maxBytes: this.services.bodyLimitBytes,
      temporaryFolder: this.services.temporaryFolder,
      explainJson: this.services.explainJson,
      onStart: () => {
        if (!this.expectsContinue || this.response.headersSent) return
        this.expectsContinue = false
        this.response.writeContinue()
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

  /**
   * Lets go of a body that was begun to be read: reads and throws away what is left of it, so that the connection can
   * serve on or end politely.
   * @returns what `Body.dispose` does
   */
  protected discardBody(): Promise<void> | undefined {
    if (this.#body === undefined && !this.hasBody) return undefined
    const disposal = this.body.dispose() // Also of one that nobody has read: who asks for it later is told.
    this.request.resume()
    return disposal
  }

  /** What trusted proxies say of the client. Static, so that no request is marked for a private method of its own. */
  static #clientOf(received: ReceivedRequest): ClientInfo {
    return (received.#client ??= received.services.clientAddress.resolve(
      received.request.socket.remoteAddress ?? '',
      (name) => received.header(name),
    ))
  }
}

/** One look at the raw fields, without building the headers object that most requests never need. */
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
