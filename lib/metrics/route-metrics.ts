/**
 * What is counted for each route, by its name, from its first request on.
 *
 * Surprise: names stay when their routes are deleted, since Prometheus counters must not go back. So that adding and
 * deleting routes cannot fill the memory, names past the 20,000th share one entry, `(other)`.
 */
import { DurationBuckets, noDurationTotals, type DurationTotals } from './duration-buckets.ts'
import { noDurations, percentileMs } from './duration-cells.ts'
import { Histogram, type DurationCells } from './histogram.ts'
import { RequestCounts, type Outcome } from './request-counts.ts'
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
  readonly byOutcome: Readonly<Record<Outcome, number>>
  readonly bytesIn: number
  readonly bytesOut: number
  readonly durations: DurationTotals
}

/** All that one process knows of a route. */
export interface RouteFigures extends RouteTotals {
  readonly window: {
    readonly count: number
    readonly errors: number
    readonly latency: DurationCells
  }
}

/** Which durations of routes are wanted: with thousands of routes they take most of the time to read. */
export type RouteTimings = 'window' | 'totals' | 'all'

/** The name for requests that no route answered. */
const noRouteName = '(none)'
/** The name for the routes past the bound. */
export const otherRoutesName = '(other)'

/** The most names that are told apart. */
export const maxNames = 20_000

/** The window of a route as the status shows it. */
export function routeWindow({ name, window: { count, errors, latency } }: RouteFigures): RouteWindow {
  return {
    name,
    count,
    errors,
    p50_ms: round3(percentileMs(latency, 50)),
    p95_ms: round3(percentileMs(latency, 95)),
    p99_ms: round3(percentileMs(latency, 99)),
    max_ms: round3(latency.maxUs / 1000),
  }
}

/** One route. */
export class RouteMetrics {
  readonly name: string
  readonly #counts = new RequestCounts()
  readonly #durations = new DurationBuckets()
  readonly #latency = new Histogram()
  #totalAtReset = 0
  #errorsAtReset = 0
  #totalAtTaking = 0

  constructor(name: string) {
    this.name = name
  }

  /** Counts a request. */
  count(status: number, receivedBytes: number, sentBytes: number): void {
    this.#counts.add(status, receivedBytes, sentBytes)
  }

  /** Counts a request whose client left while it waited for an event. */
  countLeft(receivedBytes: number): void {
    this.#counts.addLeft(receivedBytes)
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

  /** Whether there was a request since this was last asked. */
  takeChanged(): boolean {
    const { total } = this.#counts
    const changed = total > this.#totalAtTaking
    this.#totalAtTaking = total
    return changed
  }

  totals(): RouteTotals {
    const { byOutcome, bytesIn, bytesOut } = this.#counts
    return { name: this.name, byOutcome, bytesIn, bytesOut, durations: this.#durations.totals() }
  }

  figures(timings: RouteTimings = 'all'): RouteFigures {
    const { byOutcome, bytesIn, bytesOut, total, errors } = this.#counts
    const durations = timings === 'window' ? noDurationTotals : this.#durations.totals()
    const latency = timings === 'totals' ? noDurations : this.#latency.toCells()
    const window = { count: total - this.#totalAtReset, errors: errors - this.#errorsAtReset, latency }
    return { name: this.name, byOutcome, bytesIn, bytesOut, durations, window }
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
