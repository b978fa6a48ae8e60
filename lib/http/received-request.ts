/**
 * The received request: the part of a context that reads the client's input. `context.ts` extends it.
 *
 * Everything is parsed on first use. The constructor scans the raw header fields once, for the few that every request
 * needs.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { performance } from 'node:perf_hooks'
import type { TLSSocket } from 'node:tls'
import { Body } from './body.ts'
import type { ClientAddress, ClientInfo } from './client-address.ts'
import { parseCookies } from './cookie.ts'
import type { Form, MoveFile } from './form.ts'
import type { ReadingWait } from './read-chunks.ts'
import { pathBelow, type Prefixes } from './prefix.ts'
import { fieldOf, fieldsOf } from './request-fields.ts'
import type { ExplainJson } from './json.ts'

/** Shared by the requests of one server. */
export interface RequestServices {
  /** The maximum size of a body in bytes. */
  readonly bodyLimitBytes: number
  /** The folder of uploads while their requests run; default: the system's temporary folder. */
  readonly temporaryFolder?: string
  /** Moves uploaded files to their places. */
  readonly moveFile?: MoveFile
  readonly clientAddress: ClientAddress
  /** The prefixes that a request may have; undefined: none. */
  readonly prefixes?: Prefixes | undefined
  /** Explains a body that is not JSON; see `parseJson`. */
  readonly explainJson?: ExplainJson
}

/** The request of a context. */
export class ReceivedRequest {
  /** On the prototype, see `features.ts`. */
  declare readonly services: RequestServices

  /** Node's request and response, for the server's own code. */
  readonly request: IncomingMessage
  readonly response: ServerResponse

  /** The request method, upper case as sent. */
  readonly method: string
  /** The path below `server.prefix`: without the query, not decoded. */
  readonly path: string
  /** The path below which the client sees this server, such as `/app`; '' for none. See `prefix.ts`. */
  readonly prefix: string = ''
  /** Whether the client waits for `100 Continue` before it sends the body (`Expect: 100-continue`). */
  expectsContinue = false
  /** The client's X-Request-Id, if it is valid. */
  givenId: string | undefined = undefined
  /** The Host field as sent, the last of several, and their number. */
  hostField: string | undefined = undefined
  hostCount = 0
  /** Whether the request announces a body. */
  hasBody = false

  readonly #queryAt: number
  /** When the header section had been read, by `performance.now()`. */
  readonly startedAt = performance.now()
  #body: Body | undefined = undefined
  #query: URLSearchParams | undefined = undefined
  #headers: Record<string, string> | undefined = undefined
  #cookies: Record<string, string> | undefined = undefined
  #client: ClientInfo | undefined = undefined
  #madeId: string | undefined = undefined

  /** @param request its target must be in origin form: `request.url` begins with '/' */
  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request
    this.response = response
    this.method = request.method as string
    const target = request.url as string
    this.#queryAt = target.indexOf('?')
    const path = this.#queryAt < 0 ? target : target.slice(0, this.#queryAt)
    const forwarded = scan(this, request.rawHeaders)
    const { prefixes } = this.services
    if (prefixes === undefined) this.path = path
    else {
      const { own } = prefixes
      this.path = pathBelow(own, path)
      this.prefix = forwarded === '' ? own : prefixes.of(forwarded, request.socket.remoteAddress ?? '')
    }
  }

  /** The path as sent, without the query; undefined without a prefix, where it is `path`. */
  get sentPath(): string | undefined {
    if (this.prefix === '') return undefined
    const target = this.request.url as string
    return this.#queryAt < 0 ? target : target.slice(0, this.#queryAt)
  }

  /** Returns a path without the prefixes, however often it begins with one: the path that a client can request. */
  withoutPrefix(path: string): string {
    const { prefix } = this
    const own = this.services.prefixes?.own ?? ''
    let rest = path
    for (let before = ''; before !== rest; ) {
      before = rest
      rest = pathBelow(own, pathBelow(prefix, rest))
    }
    return rest
  }

  /** The query, decoded. */
  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams(this.rawQuery))
  }

  /** The query as sent, with its `?`; '' without a query. */
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

  /** The client's address: the peer's, or the address forwarded by trusted proxies. */
  get ip(): string {
    return ReceivedRequest.#clientOf(this).ip
  }

  /** Whether the client uses TLS, to this server or to a trusted proxy. */
  get secure(): boolean {
    const proto = ReceivedRequest.#clientOf(this).proto
    return proto === undefined ? (this.request.socket as TLSSocket).encrypted === true : proto === 'https'
  }

  /** The requested host, with its port if present; '' without a Host field. */
  get host(): string {
    return ReceivedRequest.#clientOf(this).host ?? this.header('host') ?? ''
  }

  /** The size of the request body: the bytes read; the announced length unless something asked for the body. */
  get receivedBytes(): number {
    if (!this.hasBody) return 0
    return this.#body?.received ?? Number(this.header('content-length') ?? 0)
  }

  /** The HTTP version: `1.0` or `1.1`. */
  get httpVersion(): string {
    return this.request.httpVersion
  }

  /** Milliseconds since the header section was read. */
  get durationMs(): number {
    return performance.now() - this.startedAt
  }

  /** The request id: the client's if it is 8 to 128 of `A-Za-z0-9_.-`, else a new id. It is sent back. */
  get id(): string {
    return this.givenId ?? (this.#madeId ??= randomUUID())
  }

  /** The id to send back; undefined if there is none yet. */
  get idToSend(): string | undefined {
    return this.givenId ?? this.#madeId
  }

  /** The maximum size of the body in bytes. */
  get bodyLimitBytes(): number {
    return this.services.bodyLimitBytes
  }

  /** The body, for the server's own code. */
  get body(): Body {
    return (this.#body ??= new Body(this.request, {
      maxBytes: this.bodyLimitBytes,
      temporaryFolder: this.services.temporaryFolder,
      moveFile: this.services.moveFile,
      explainJson: this.services.explainJson,
      onStart: () => {
        if (!this.expectsContinue || this.response.headersSent) return
        this.expectsContinue = false
        this.response.writeContinue()
      },
      onWait: () => this.beginReading(),
    }))
  }

  /** Called before reading a body that has not fully arrived. Throws HttpError 503 if too many bodies are arriving. */
  protected beginReading(): ReadingWait | undefined {
    return undefined
  }

  /** Reads the body as bytes. This and the next three read once and may be called again; 413 if it is too large. */
  get readBytes(): () => Promise<Buffer> {
    return () => this.body.bytes()
  }

  /** Reads the body as text. */
  get readText(): () => Promise<string> {
    return () => this.body.text()
  }

  /** Reads the body as JSON; 400 if it is not JSON. */
  get readJson(): () => Promise<unknown> {
    return () => this.body.json()
  }

  /** Reads a form, urlencoded or multipart; 415 if the body has another type. */
  get readForm(): () => Promise<Form> {
    return () => this.body.form()
  }

  /** Ends a read of a body that has not fully arrived. */
  protected stopReading(): void {
    this.#body?.stop()
  }

  /**
   * Discards the body, including the part that the client still sends, so that the connection can be reused or closed
   * without a reset. Call it when the request has been answered and its action has ended.
   * @returns as `Body.dispose`
   */
  discardBody(): Promise<void> | undefined {
    if (this.#body === undefined && !this.hasBody) return undefined
    const disposal = this.body.dispose() // Even if nothing was read, so that a later read rejects.
    this.request.resume()
    return disposal
  }

  /** Returns the client, by trusted proxies. Static: a private method would add a brand to every request. */
  static #clientOf(received: ReceivedRequest): ClientInfo {
    return (received.#client ??= received.services.clientAddress.resolve(
      received.request.socket.remoteAddress ?? '',
      (name) => received.header(name),
    ))
  }
}

/**
 * Reads one field of a form body, for code that must leave other bodies to the action.
 * @returns the values in the order sent; synchronously undefined if the request has no form body. Rejects with the
 *   HttpError of a body that cannot be read
 */
export function readFormField(received: ReceivedRequest, name: string): Promise<readonly string[]> | undefined {
  if (!received.hasBody || !received.body.isForm) return undefined
  return received.readForm().then((form) => form.getAll(name))
}

/** Whether an `X-Request-Id` is valid: 8 to 128 of `A-Za-z0-9_.-`. */
export function isRequestId(text: string): boolean {
  return /^[A-Za-z0-9_.-]{8,128}$/.test(text)
}

/**
 * Scans the raw fields once, without building the headers object that most requests never need.
 * @returns the values of `X-Forwarded-Prefix`, joined by commas; '' without one
 */
function scan(received: ReceivedRequest, raw: readonly string[]): string {
  let forwardedPrefix = ''
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
        break
      case 18:
        if (name.toLowerCase() === 'x-forwarded-prefix') {
          forwardedPrefix += forwardedPrefix === '' ? raw[at + 1] : `,${raw[at + 1]}`
        }
    }
  }
  return forwardedPrefix
}
