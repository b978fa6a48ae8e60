/**
 * The last requests, for the monitor page: a ring whose places are overwritten, so that a request allocates nothing.
 */

/** A request that was served. */
export interface RecentRequest {
  /** When its answer ended, in milliseconds since 1970. */
  readonly time: number
  readonly method: string
  /** Without the query, and not more than its first 200 characters. */
  readonly path: string
  readonly status: number
  readonly duration_ms: number
  /** The name of the route; '' where none answered. */
  readonly route: string
}

/** How many requests are kept. */
export const keptRequests = 100
const maxPathLength = 200

/** Keeps the last 100 requests. */
export class RecentRequests {
  readonly #times = new Float64Array(keptRequests)
  readonly #durationsUs = new Float64Array(keptRequests)
  readonly #statuses = new Uint16Array(keptRequests)
  readonly #methods: string[] = new Array<string>(keptRequests).fill('')
  readonly #paths: string[] = new Array<string>(keptRequests).fill('')
  readonly #routes: string[] = new Array<string>(keptRequests).fill('')
  #next = 0
  #count = 0

  /** Keeps a request that has ended. */
  add(endedAtMs: number, method: string, path: string, status: number, durationUs: number, route: string): void {
    const at = this.#next
    this.#times[at] = endedAtMs
    this.#methods[at] = method
    this.#paths[at] = path
    this.#statuses[at] = status
    this.#durationsUs[at] = durationUs
    this.#routes[at] = route
    this.#next = at + 1 === keptRequests ? 0 : at + 1
    if (this.#count < keptRequests) this.#count += 1
  }

  /** The requests, the oldest first. */
  list(): RecentRequest[] {
    const oldest = this.#count < keptRequests ? 0 : this.#next
    return Array.from({ length: this.#count }, (_, index) => this.#entry((oldest + index) % keptRequests))
  }

  #entry(at: number): RecentRequest {
    return {
      time: this.#times[at] as number,
      method: this.#methods[at] as string,
      path: (this.#paths[at] as string).slice(0, maxPathLength),
      status: this.#statuses[at] as number,
      duration_ms: (this.#durationsUs[at] as number) / 1000,
      route: this.#routes[at] as string,
    }
  }
}
