/**
 * What is counted for each route, by its name, from its first request on.
 *
 * Surprise: names stay when their routes are deleted, since Prometheus counters must not go back. So that adding and
 * deleting routes cannot fill the memory, names past the 20,000th share one entry, `(other)`.
 */
import { DurationBuckets, type DurationTotals } from './duration-buckets.ts'
import { Histogram } from './histogram.ts'
import { RequestCounts, type StatusClass } from './request-counts.ts'
import { round3 } from './round.ts'

/** A route in the present window. */
export interface RouteWindow {
  readonly name: string
  readonly count: number
  /** Answers of 400 and above. */
  readonly errors: number
  readonly p50_ms: number
  readonly p95_ms: number
  readonly p99_ms: number
  readonly max_ms: number
}

/** A route since the server started. */
export interface RouteTotals {
  readonly name: string
  readonly byClass: Readonly<Record<StatusClass, number>>
  readonly bytesIn: number
  readonly bytesOut: number
  readonly durations: DurationTotals
}

/** The name for requests that no route answered. */
const noRouteName = '(none)'
/** The name for the routes past the bound. */
const otherRoutesName = '(other)'

const maxNames = 20_000

/** One route. */
export class RouteMetrics {
  readonly name: string
  readonly #counts = new RequestCounts()
  readonly #durations = new DurationBuckets()
  readonly #latency = new Histogram()
  #totalAtReset = 0
  #errorsAtReset = 0

  constructor(name: string) {
    this.name = name
  }

  /** Counts a request. */
  count(status: number, receivedBytes: number, sentBytes: number): void {
    this.#counts.add(status, receivedBytes, sentBytes)
  }

  /** Counts how long a request took, in whole microseconds. */
  time(durationUs: number): void {
    this.#durations.add(durationUs)
    this.#latency.add(durationUs)
  }

  resetWindow(): void {
    this.#latency.reset()
    this.#totalAtReset = this.#counts.total
    this.#errorsAtReset = this.#counts.errors
  }

  /** Whether there was a request. */
  get used(): boolean {
    return this.#counts.total > 0
  }

  /** Whether the window has a request. */
  get active(): boolean {
    return this.#counts.total > this.#totalAtReset
  }

  window(): RouteWindow {
    return {
      name: this.name,
      count: this.#counts.total - this.#totalAtReset,
      errors: this.#counts.errors - this.#errorsAtReset,
      p50_ms: round3(this.#latency.percentile(50)),
      p95_ms: round3(this.#latency.percentile(95)),
      p99_ms: round3(this.#latency.percentile(99)),
      max_ms: round3(this.#latency.maxMs),
    }
  }

  totals(): RouteTotals {
    const { byClass, bytesIn, bytesOut } = this.#counts
    return { name: this.name, byClass, bytesIn, bytesOut, durations: this.#durations.totals() }
  }
}

/** The routes by name. */
export class RouteTable {
  readonly #none = new RouteMetrics(noRouteName)
  readonly #other = new RouteMetrics(otherRoutesName)
  readonly #all = [this.#none, this.#other]
  readonly #byName = new Map([
    ['', this.#none],
    [noRouteName, this.#none],
    [otherRoutesName, this.#other],
  ])

  /** The entry of a route, made on its first request; '' is the name where no route answered. */
  of(name: string): RouteMetrics {
    return this.#byName.get(name) ?? this.#create(name)
  }

  /** All entries, each once, also those without a request. */
  get all(): readonly RouteMetrics[] {
    return this.#all
  }

  #create(name: string): RouteMetrics {
    if (this.#all.length >= maxNames) return this.#other
    const made = new RouteMetrics(name)
    this.#byName.set(name, made)
    this.#all.push(made)
    return made
  }
}
