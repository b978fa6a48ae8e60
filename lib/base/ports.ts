/**
 * Ports that several rooms use: what they need of the logs and the metrics. Other ports stand where their one user is.
 * The rest of the server implements them structurally, and the composition root hands the implementations over.
 */

/** A request that a line of the log is about. Its context is one, so nothing is copied. */
export interface LoggedRequest {
  /** The request id, which is made when it is first read. */
  readonly id: string
  /** The request id that is sent back; undefined while nobody has asked for one. */
  readonly idToSend: string | undefined
  readonly method: string
  /** As sent, without the query. */
  readonly path: string
  /** Empty when no route answers. */
  readonly routeName: string
}

/** The details of a log line besides its message. */
export interface LogDetails {
  /** What was thrown: its stack follows the line, with those of its causes. */
  readonly thrown?: unknown
  readonly request?: LoggedRequest
  /** Whether the line as text begins with the method, path and route of `request`, which the message does not name. */
  readonly isLabelled?: boolean
  readonly status?: number
  readonly durationMs?: number
  /** Fields that the application adds. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined
}

/** The log of one module. Its functions may be called without it. */
export interface LogPort {
  debug(message: string, details?: LogDetails): void
  info(message: string, details?: LogDetails): void
  warn(message: string, details?: LogDetails): void
  error(message: string, details?: LogDetails): void
  /** Whether a DEBUG line would be written now, so that the caller can save building it. */
  readonly debugEnabled: boolean
}

/** A change of the server, and who made it. */
export interface Change {
  /** The address of the client, or the name of the signal. */
  readonly by: string
  /** The user who was signed in to the panel. */
  readonly user?: string | undefined
  readonly what: string
  /** The value before and after the change; any JSON. */
  readonly from?: unknown
  readonly to?: unknown
}

/** Gives the log of a module. */
export type OpenLog = (module: string) => LogPort

/** A request that has ended, as the metrics and the access log read it. The context is one, so nothing is copied. */
export interface EndedRequest {
  readonly ip: string
  readonly method: string
  /** As sent, without the query. */
  readonly path: string
  /** `1.0` or `1.1`. */
  readonly httpVersion: string
  readonly sentStatus: number
  /** The bytes of the answer's body. */
  readonly sentBytes: number
  /** The bytes of the request's body. */
  readonly receivedBytes: number
  readonly durationMs: number
  /** Whether the client disconnected while it waited for an event, which is no error. */
  readonly leftWait: boolean
  /** Empty when no route answered. */
  readonly routeName: string
  /** The request id that the client sent, if any. */
  readonly givenId: string | undefined
  /** A request header field, by its lower-case name. */
  header(name: string): string | undefined
}

/** Counts requests. */
export interface MetricsPort {
  /**
   * @param timed whether the duration says how fast the server is; that of a wait does not
   * @param endedAtMs milliseconds since 1970
   */
  record(request: EndedRequest, timed: boolean, endedAtMs: number): void
}

/** Writes a line for each request. */
export interface AccessLogPort {
  /** @param endedAtMs milliseconds since 1970 */
  write(request: EndedRequest, endedAtMs: number): void
}
