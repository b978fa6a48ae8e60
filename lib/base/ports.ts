/**
 * Ports that several rooms use, for logs and metrics. Other ports are defined next to their only user. The rest of the
 * server implements them structurally, and the composition root passes the implementations.
 */

/** The request of a log line. A context implements it, so nothing is copied. */
export interface LoggedRequest {
  /** The request id, created on first read. */
  readonly id: string
  /** The request id to send back; undefined until an id is needed. */
  readonly idToSend: string | undefined
  readonly method: string
  /** Without the query and `server.prefix`. */
  readonly path: string
  /** Empty if no route matches. */
  readonly routeName: string
}

/** The details of a log line, in addition to its message. */
export interface LogDetails {
  /** A thrown value: its stack follows the line, with the stacks of its causes. */
  readonly thrown?: unknown
  readonly request?: LoggedRequest
  /** Whether the text line begins with method, path and route of `request`, which the message does not have. */
  readonly isLabelled?: boolean
  readonly status?: number
  readonly durationMs?: number
  /** Fields that the application adds. */
  readonly fields?: Readonly<Record<string, unknown>> | undefined
}

/** The log of one module. Its functions do not depend on `this`. */
export interface LogPort {
  debug(message: string, details?: LogDetails): void
  info(message: string, details?: LogDetails): void
  warn(message: string, details?: LogDetails): void
  error(message: string, details?: LogDetails): void
  /** Whether a DEBUG line would be written now, so that the caller can avoid building it. */
  readonly debugEnabled: boolean
}

/** A change of the server, and who made it. */
export interface Change {
  /** The address of the client, or the name of the signal. */
  readonly by: string
  /** The signed-in user of the panel. */
  readonly user?: string | undefined
  readonly what: string
  /** The value before and after the change; any JSON. */
  readonly from?: unknown
  readonly to?: unknown
}

/** Returns the log of a module. */
export type OpenLog = (module: string) => LogPort

/** Takes note of the requests that run, so that they can be named when the process hangs or ends. */
export interface RunningPort {
  /** Returns what to pass to `ended`, from 0. */
  began(request: Pick<LoggedRequest, 'method' | 'path'>): number
  ended(slot: number): void
}

/** A finished request, for metrics and access log. A context implements it, so nothing is copied. */
export interface EndedRequest {
  readonly ip: string
  readonly method: string
  /** Without the query and `server.prefix`. */
  readonly path: string
  /** The path as sent, if the server has a prefix. */
  readonly sentPath?: string | undefined
  /** `1.0` or `1.1`. */
  readonly httpVersion: string
  readonly sentStatus: number
  /** The bytes of the response body. */
  readonly sentBytes: number
  /** The bytes of the request body. */
  readonly receivedBytes: number
  readonly durationMs: number
  /** Whether the client disconnected while waiting for an event, which is not an error. */
  readonly leftWait: boolean
  /** Empty if no route matched. */
  readonly routeName: string
  /** The client's request id, if any. */
  readonly givenId: string | undefined
  /** The request id, if the client gave one or the server has made one, as for a log line. */
  readonly idToSend: string | undefined
  /** A request header field, by its lower-case name. */
  header(name: string): string | undefined
}

/** Counts requests. */
export interface MetricsPort {
  /**
   * @param timed whether the duration measures the server's speed, unlike the duration of a wait
   * @param endedAtMs milliseconds since 1970
   */
  record(request: EndedRequest, timed: boolean, endedAtMs: number): void
}

/** Writes a line for each request. */
export interface AccessLogPort {
  /** @param endedAtMs milliseconds since 1970 */
  write(request: EndedRequest, endedAtMs: number): void
}
