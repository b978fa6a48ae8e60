/**
 * Errors with an HTTP status: code that refuses a request throws one, and `error-reply.ts` renders it.
 *
 * Surprise: the message reaches the client only if the status is below 500. From 500 it is only logged. Only errors
 * from 500 have a stack, since capturing it takes 4 us, a third of a plain request (Node 20).
 */
import { isError } from '../base/reason.ts'
import { checkField } from './header-list.ts'
import { STATUS_CODES } from './node-http.ts'

/** Marks an HttpError, so that errors of another copy of this server, which a test may have loaded, count too. */
const mark = Symbol.for('svc.HttpError')

/** The server's error codes and their meanings. A test compares `docs/errors.md` with this table. */
export const errorCodes = {
  bad_request: 'The request could not be read: a malformed line, header or body framing.',
  bad_path_encoding: 'A percent-encoding in the path is malformed or is not UTF-8.',
  bad_json: 'The body is not valid JSON.',
  bad_form: 'The body is not a valid form: wrong encoding, broken multipart framing, too many fields.',
  bad_host: 'The Host header is missing, duplicated, malformed or not a host that this server serves.',
  client_closed: 'The client disconnected before its request was read. Only the log shows this error.',
  forbidden: 'The request would change the server and comes from another site, or is a prefetch.',
  not_found: 'No route or static file matches this path, or a middleware ended without a reply and without next().',
  method_not_allowed: 'The path exists, but not with this method; `Allow` lists the allowed methods.',
  request_timeout:
    'The request did not arrive in time, or its body stopped (`server.header_timeout_s`, `server.request_timeout_s`, '
    + '`server.body_idle_timeout_s`); `detail` names the reason.',
  body_too_large: 'The body is larger than `body_limit_kb` of the route, else `server.body_limit_kb`.',
  too_many_requests:
    'The client has made more requests than a limit allows (`SVC_MwLimit`); `Retry-After` says when to try again.',
  unsupported_media_type: 'The action does not accept the type of the body.',
  unsupported_encoding: 'The body has a Content-Encoding; bodies are read as sent, without decompression.',
  range_not_satisfiable: 'The Range header asks for bytes beyond the end of the file.',
  expectation_failed: 'The Expect header is not 100-continue.',
  header_too_large: 'The header section is larger than 16 KiB.',
  bad_cursor: '`since` is not one whole number from 0.',
  bad_handshake: 'The WebSocket handshake is invalid; `detail` has the reason (RFC 6455, section 4.2.1).',
  upgrade_required: 'The path serves only WebSockets, or the handshake requests a version other than 13.',
  csrf_invalid:
    'The request would change something and its CSRF token is missing or invalid, or it comes from another site; '
    + '`reason` is one of `missing`, `malformed`, `expired`, `signature`, `mismatch`, `cross_site`.',
  csrf_requires_session: 'The route has `SVC_MwCsrf` and, before it, no `SVC_MwSession`.',
  unauthorized: 'Nobody is signed in (`SVC_MwIsAuth`), or there is no bearer token (`SVC_MwJwt`).',
  auth_requires_session: 'The route has `SVC_MwIsAuth` and, before it, no `SVC_MwSession`.',
  invalid_token: 'The bearer token is malformed, signed with another key, expired or not yet valid.',
  jwt_requires_key: 'The route has `SVC_MwJwt`, and the middleware configuration has no key for it.',
  password_too_long: 'A password has more than 1,024 bytes (`ctx.password`).',
  invalid:
    '`ctx.validate` or `ctx.invalid` refused the input; `errors` has the problems by path. A form may be sent back to '
    + 'its page instead: [forms](forms.md#when-the-input-is-wrong).',
  internal_error: 'An action, view or middleware failed. The log has the reason under module `error`.',
  overloaded:
    'Every worker is busy and the queue is full, or the limit of WebSockets is reached; `Retry-After` says when to '
    + 'try again.',
  maintenance: 'The application is in maintenance: `paths.maintenance` exists. `Retry-After` says when to try again.',
  shared_away:
    'The engine that the processes share (`shared.url`) cannot be reached or is read-only; `Retry-After` says when '
    + 'to try again.',
} as const

/** A code of {@link errorCodes}. Applications may use their own codes with `ctx.fail`. */
export type ErrorCode = keyof typeof errorCodes

/** The problems with the input of a request, as found by `ctx.validate`. */
export interface InvalidInput {
  /** The messages by path (`address.city`, `tags.0`; '' for the whole input), at least one each. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  /** The input of a form that may be shown again, without secrets; empty for JSON. */
  readonly input: Readonly<Record<string, unknown>>
  /** The path and query of the form's page, where a flash bag has both: the client is redirected there with 303. */
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
  /** Header fields to send with the response, such as `Allow` or `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>
  /** The problems with the input, if they are the error. */
  readonly invalid: InvalidInput | undefined

  /**
   * @param status 400 to 599
   * @param code one of {@link errorCodes}, or the application's own; default: by the status, such as `not_found`
   * @param message for the client below 500, only for the log from 500; default: by the status, such as `Not Found`
   * @param options `headers` to send along; `cause` as in Error; `invalid` in place of the message
   * @throws RangeError if the status is not an integer from 400 to 599; TypeError for a header field that cannot be
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
  /** Marks a refusal; unlike `instanceof`, reading it never runs application code. */
  readonly #mark = true
  /** 400 to 499. */
  readonly status: number
  /** One of {@link errorCodes}. */
  readonly code: ErrorCode
  /** For the client. */
  readonly message: string
  /** Header fields to send with the response. */
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

/** Makes the 503 `shared_away` of a request that needs what processes share while it cannot be reached. */
export function awayError(reason: string, cause?: unknown): HttpError {
  return new HttpError(503, 'shared_away', reason, { headers: { 'Retry-After': '1' }, cause })
}
