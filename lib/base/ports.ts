/**
 * Ports that several rooms use: what they need of the logs and the metrics. Other ports stand where their one user is.
 * The rest of the server implements them structurally, and the composition root hands the implementations over.
 */

/** The log of one module. Its functions may be called without it. */
export interface LogPort {
  debug(message: string): void
  info(message: string): void
  /** @param thrown its stack follows the line, with those of its causes */
  warn(message: string, thrown?: unknown): void
  /** @param thrown as that of `warn` */
  error(message: string, thrown?: unknown): void
  /** Whether a DEBUG line would be written now, so that the caller can save building it. */
  readonly debugEnabled: boolean
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
