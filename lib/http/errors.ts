/**
 * The error with an HTTP status: code that refuses a request throws it, and `error-reply.ts` renders it.
 *
 * Surprise: the message reaches the client only when the status is below 500. From 500 on it is for the log. Only those
 * errors have a stack, since taking one takes 4 us, a third of a plain request (Node 20).
 */
import { isError } from '../base/reason.ts'
import { checkField } from './header-list.ts'
import { STATUS_CODES } from './node-http.ts'

/** Marks an HttpError, so that one of another copy of this server, which a test may have loaded, is one too. */
const mark = Symbol.for('svc.HttpError')

/** The codes of the server itself and their meanings. A test compares `docs/errors.md` with this table. */
export const errorCodes = {
  bad_request: 'The request could not be read: a malformed line, header or body framing.',
  bad_path_encoding: 'A percent-encoding in the path is wrong or is not UTF-8.',
  bad_json: 'The body is not valid JSON.',
  bad_form: 'The body is not a valid form: wrong encoding, broken multipart framing, too many fields.',
  bad_host: 'The Host header is missing, doubled, malformed or not one that this server answers to.',
  client_closed: 'The client left before its request was read. Nobody sees the answer; the log does.',
  forbidden: 'The request would change the server and says that it comes from another site, or that it is a prefetch.',
  not_found: 'No route and no static file answers this path, or a middleware ended without a reply and without next().',
  method_not_allowed: 'The path exists, but not with this method; `Allow` names the methods it takes.',
  request_timeout:
    'The request did not arrive in time, or its body stopped (`server.header_timeout_s`, `server.request_timeout_s`, '
    + '`server.body_idle_timeout_s`); `detail` says which.',
  body_too_large: 'The body is larger than `server.body_limit_kb`.',
  too_many_requests:
    'The client has made more requests than a limit allows (`SVC_MwLimit`); `Retry-After` says when to try again.',
  unsupported_media_type: 'The body is of a type that the action does not read.',
  unsupported_encoding: 'The body has a Content-Encoding; bodies are read as sent, without decompression.',
  range_not_satisfiable: 'The Range header asks for bytes beyond the end of the file.',
  expectation_failed: 'The Expect header asks for something other than 100-continue.',
  header_too_large: 'The header section is larger than 16 KiB.',
  bad_cursor: '`since` is not one whole number from 0.',
  bad_handshake: 'The WebSocket handshake is wrong; `detail` says what (RFC 6455, section 4.2.1).',
  upgrade_required: 'The address serves WebSockets only, or the handshake asks for another version than 13.',
  csrf_invalid:
    'The request would change something and its CSRF token is missing or not valid, or it says that it comes from '
    + 'another site; `reason` says which: `missing`, `malformed`, `expired`, `signature`, `mismatch`, `cross_site`.',
  csrf_requires_session: 'The route has `SVC_MwCsrf` and, before it, no `SVC_MwSession`.',
  unauthorized: 'Nobody is signed in (`SVC_MwIsAuth`), or there is no bearer token (`SVC_MwJwt`).',
  auth_requires_session: 'The route has `SVC_MwIsAuth` and, before it, no `SVC_MwSession`.',
  invalid_token: 'The bearer token is malformed, signed with another key, expired or not yet valid.',
  jwt_requires_key: 'The route has `SVC_MwJwt`, and the middleware configuration has no key for it.',
  password_too_long: 'A password has more than 1,024 bytes (`ctx.password`).',
  invalid:
    'The input is wrong, as `ctx.validate` found; `errors` says by path what. A form may be sent back to its page '
    + 'instead: [forms](forms.md#when-the-input-is-wrong).',
  internal_error: 'An action, view or middleware failed. The log has the reason under module `error`.',
  overloaded:
    'Every worker is busy and the queue is full, or as many WebSockets are open as may be; `Retry-After` says '
    + 'when to try again.',
  shared_away:
    'What the processes share (`shared.url`) cannot be reached or does not take changes now; `Retry-After` says '
    + 'when to try again.',
} as const

/** A code of {@link errorCodes}. Applications may use codes of their own with `ctx.fail`. */
export type ErrorCode = keyof typeof errorCodes

/** What is wrong with the input of a request. `ctx.validate` finds it. */
export interface InvalidInput {
  /** By path (`address.city`, `tags.0`; '' for the whole): what is wrong there, at least one text each. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  /** The input of a form that may be shown again, without secrets; empty for JSON. */
  readonly input: Readonly<Record<string, unknown>>
  /** The path and query of the form's page, where a flash bag has both: the client is sent there with 303. */
  readonly location?: string | undefined
}

const noHeaders: Readonly<Record<string, string>> = {}

/** An error that ends a request with this status. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  /** The HTTP status, 400 to 599. */
  readonly status: number
  /** A short machine-readable word, `snake_case`; the `error` member of the JSON body. */
  readonly code: string
  /** Header fields to send with the answer, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>
  /** What is wrong with the input, where that is the error. */
  readonly invalid: InvalidInput | undefined

  /**
   * @param status 400 to 599
   * @param code one of {@link errorCodes}, or an application's own word; that of the status unless given: `not_found`
   * @param message for the client below 500, only for the log from 500 on; that of the status unless given: `Not Found`
   * @param options `headers` to send along; `cause` as in Error; `invalid` in place of the message
   * @throws RangeError when the status is not an integer from 400 to 599; TypeError for a header field that cannot be
   *   sent, or that only the server sets, such as Content-Length
   */
  constructor(
    status: number,
    code: ErrorCode | (string & {}) = codeOf(status),
    message = phraseOf(status),
    options: { headers?: Readonly<Record<string, string>>; cause?: unknown; invalid?: InvalidInput } = {},
  ) {
    const { stackTraceLimit } = Error
    if (status < 500) Error.stackTraceLimit = 0
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    Error.stackTraceLimit = stackTraceLimit
    if (!Number.isInteger(status) || status < 400 || status > 599) {
      throw new RangeError(`An error status is an integer from 400 to 599: it is ${String(status)}`)
    }
    this.status = status
    this.code = code
    this.headers = options.headers ?? noHeaders
    if (this.headers !== noHeaders) {
      for (const [name, value] of Object.entries(this.headers)) checkField(name, value)
    }
    this.invalid = options.invalid
  }

  get [mark](): true {
    return true
  }
}

function codeOf(status: number): string {
  return status === 500 ? 'internal_error' : phraseOf(status).toLowerCase().replace(/\W+/g, '_')
}

/** The reason phrase of a status (RFC 9110, section 15). */
function phraseOf(status: number): string {
  return STATUS_CODES[status] ?? 'Error'
}

/** Whether a value is an HttpError: by its mark, not by its class. Never throws. */
export function isHttpError(thrown: unknown): thrown is HttpError {
  try {
    return isError(thrown) && mark in thrown
  } catch {
    return false // A proxy that refuses to be asked.
  }
}

/** The error 503 of a request that is not served now and may be tried again in a second. */
export function unserved(message: string): HttpError {
  return new HttpError(503, 'overloaded', message, { headers: { 'Retry-After': '1' } })
}

/**
 * The server's own refusal of a request, below 500. It is answered like an HttpError with the same members, but it is
 * never thrown and no Error: making and throwing one takes a microsecond, a tenth of a plain request.
 */
export class Refusal {
  /** Marks a refusal; reading it runs no code of an application, as `instanceof` may. */
  readonly #mark = true
  /** 400 to 499. */
  readonly status: number
  /** One of {@link errorCodes}. */
  readonly code: ErrorCode
  /** For the client. */
  readonly message: string
  /** Header fields to send with the answer. */
  readonly headers: Readonly<Record<string, string>>
  declare readonly cause?: undefined
  declare readonly invalid?: undefined

  constructor(status: number, code: ErrorCode, message: string, headers = noHeaders) {
    this.status = status
    this.code = code
    this.message = message
    this.headers = headers
  }

  /** Whether a value is a refusal. Never throws. */
  static is(thrown: unknown): thrown is Refusal {
    return typeof thrown === 'object' && thrown !== null && #mark in thrown
  }
}
