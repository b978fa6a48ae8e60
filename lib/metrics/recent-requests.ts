/** The last requests, as the monitor page shows them. */

/** A request that was served. */
export interface RecentRequest {
  /** When its answer ended, in milliseconds since 1970. */
  readonly time: number
  readonly method: string
  /** Without the query, and not more than its first 200 characters. */
  readonly path: string
  readonly status: number
  readonly duration_ms: number
  /** The client left while the request waited for an event: no error, whatever the status. */
  readonly left?: true
  /** The name of the route; '' where none answered. */
  readonly route: string
}

/** How many requests are kept. */
export const keptRequests = 100
/** The most characters of a path. */
export const maxPathLength = 200
