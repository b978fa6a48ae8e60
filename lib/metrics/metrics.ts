/**
 * Counts requests since the start, for the server as a whole and for each route. No counter decreases.
 *
 * A bench window is the difference from the counters at its start. A route saves these at its first request in the
 * window, so a window costs nothing for routes that are not requested.
 *
 * Route names stay when their routes are deleted, since Prometheus counters must not decrease. So that adding and
 * deleting routes cannot exhaust the memory, names past the 20,000th share one entry, `(other)`.
 */
import { performance } from 'node:perf_hooks'
import type { EndedRequest } from '../base/ports.ts'
import { Recent } from '../base/recent.ts'
import { Histogram, toMicroseconds, type Durations } from './histogram.ts'
import { combineAll, subtract } from './values.ts'

/** The outcomes of requests: a status class, or `left`: the client disconnected while waiting for an event. */
const outcomes = ['1xx', '2xx', '3xx', '4xx', '5xx', 'left'] as const

/** The number of requests with each outcome. */
type RequestCounts = Readonly<Record<(typeof outcomes)[number], number>>

/** What is summed over requests, by name. A value that is negative or NaN counts as 0. */
const sums = {
  /** Bytes of request bodies. */
  bytesIn: ({ receivedBytes }: EndedRequest) => receivedBytes,
  /** Bytes of response bodies. */
  bytesOut: ({ sentBytes, leftWait }: EndedRequest) => (leftWait ? 0 : sentBytes),
}
const sumNames = Object.keys(sums) as readonly (keyof typeof sums)[]
const summands = sumNames.map((name) => sums[name])

/** Everything that is counted about requests. */
export type RequestValues = {
  readonly requests: RequestCounts
  /** From the header section to the end of the response. Requests that waited for an event are left out. */
  readonly durations: Durations
} & Readonly<Record<keyof typeof sums, number>>

/** The requests of one route, since the start or in a window. */
export interface RouteReading {
  readonly name: string
  readonly values: RequestValues
}

/** A request that was served, as the monitor page shows it. */
export interface RecentRequest {
  /** When its response ended, in milliseconds since 1970. */
  readonly time: number
  readonly method: string
  /** Without the query; at most its first 200 characters. */
  readonly path: string
  readonly status: number
  readonly duration_ms: number
  /** The client disconnected while the request waited for an event: not an error, whatever the status. */
  readonly left?: true
  /** The name of the route; '' if none answered. */
  readonly route: string
  /** The request id, if it has one: no log line without it is about the request. At most 128 characters. */
  readonly request_id?: string
}

/** The number of recent requests kept. */
export const keptRequests = 100
const maxPathLength = 200
/** The name for requests that no route answered. */
const noRouteName = '(none)'
/** The name for routes past the limit. */
export const otherRoutesName = '(other)'
/** The most names with their own entry. */
export const maxNames = 20_000

/** The window of a route that was never requested. */
const never = -1

const left = outcomes.indexOf('left')

/** The number of requests, and of those answered with 400 or above. */
export function countRequests(requests: RequestCounts): { readonly total: number; readonly errors: number } {
  const errors = requests['4xx'] + requests['5xx']
  return { total: requests['1xx'] + requests['2xx'] + requests['3xx'] + requests.left + errors, errors }
}

/** Counts requests. It holds no timer, so there is nothing to close. */
export class Metrics {
  /** In milliseconds since 1970. */
  readonly startedAtMs: number
  readonly #all = new RequestCounter('')
  readonly #none = new RequestCounter(noRouteName)
  readonly #other = new RequestCounter(otherRoutesName)
  /** The routes in the order in which they were first requested. */
  readonly #routes = [this.#none, this.#other]
  readonly #byName = new Map([
    ['', this.#none],
    [noRouteName, this.#none],
    [otherRoutesName, this.#other],
  ])
  readonly #recent = new Recent<RecentRequest>(keptRequests)
  readonly #now: () => number
  readonly #startedAt: number
  /** The number of the bench window. */
  #window = 0

  /** @param options clocks in milliseconds: `now` is monotonic, `wallNow` is the wall clock */
  constructor({ now = () => performance.now(), wallNow = Date.now } = {}) {
    this.#now = now
    this.startedAtMs = wallNow()
    this.#startedAt = now()
  }

  /**
   * Counts a request that has ended. Keeps only a small object, in the list of recent requests.
   * @param timed false to leave out the duration: the request waited for an event, which is no measure of the server
   * @param endedAtMs when it ended, in milliseconds since 1970
   */
  record(request: EndedRequest, timed: boolean, endedAtMs: number): void {
    const { method, path, sentStatus, leftWait, routeName } = request
    const durationUs = toMicroseconds(request.durationMs)
    const slot = leftWait ? left : slotOf(sentStatus)
    const route = this.#byName.get(routeName) ?? this.#create(routeName)
    if (route.window !== this.#window) route.beginWindow(this.#window)
    route.count(slot, request)
    this.#all.count(slot, request)
    if (timed) {
      route.durations.add(durationUs)
      this.#all.durations.add(durationUs)
    }
    const recent: RecentRequest = {
      time: endedAtMs,
      method,
      path: path.slice(0, maxPathLength),
      status: sentStatus | 0, // a whole number, whatever it was
      duration_ms: durationUs / 1000,
      route: routeName,
    }
    const id = request.idToSend
    if (!leftWait && id === undefined) this.#recent.add(recent)
    else this.#recent.add({ ...recent, ...(leftWait && { left: true }), ...(id !== undefined && { request_id: id }) })
  }

  /** Begins a bench window. */
  beginWindow(): void {
    this.#window += 1
    this.#all.durations.beginWindow() // Routes do so at their next request.
  }

  /** Returns the values of all requests since the start. */
  read(): RequestValues {
    return this.#all.read()
  }

  /** Returns each route that was requested since the start. */
  readRoutes(): RouteReading[] {
    return this.#routes.filter(({ window }) => window !== never).map((route) => route.reading())
  }

  /** The same, but only the routes that were requested since the last call. Must have a single caller. */
  takeChangedRoutes(): RouteReading[] {
    return this.#routes.filter((route) => route.isChanged).map((route) => {
      route.isChanged = false
      return route.reading()
    })
  }

  /** Returns each route that was requested in the bench window, with its values in the window. */
  readWindowRoutes(): RouteReading[] {
    return this.#routes.filter(({ window }) => window === this.#window).map((route) => route.windowReading())
  }

  /** Seconds since the start. */
  get uptimeSeconds(): number {
    return toMicroseconds(this.#now() - this.#startedAt) / 1e6
  }

  /** Returns the last 100 requests, oldest first. */
  recent(): readonly RecentRequest[] {
    return this.#recent.list()
  }

  #create(name: string): RequestCounter {
    if (this.#routes.length >= maxNames) return this.#other
    const route = new RequestCounter(name)
    this.#byName.set(name, route)
    this.#routes.push(route)
    return route
  }
}

/** Counts the requests of a route, or all requests. */
class RequestCounter {
  readonly durations = new Histogram()
  /** Whether it has counted a request since the changes were last read. */
  isChanged = false
  /** The number of the last window with a request. */
  window = never
  readonly #name: string
  /** A slot for each outcome, then one for each sum. */
  readonly #slots = new Float64Array(outcomes.length + sumNames.length)
  /** The counters when that window began; undefined if the first request came in it. */
  #before: RequestValues | undefined

  constructor(name: string) {
    this.#name = name
  }

  /** @param slot that of the request's outcome */
  count(slot: number, request: EndedRequest): void {
    this.isChanged = true
    this.#slots[slot]! += 1 // A slot of the array; so below.
    for (let at = 0; at < summands.length; at += 1) {
      const summand = summands[at]!(request)
      if (summand > 0) this.#slots[outcomes.length + at]! += summand
    }
  }

  beginWindow(window: number): void {
    if (this.window !== never) this.#before = this.read()
    this.window = window
    this.durations.beginWindow()
  }

  read(): RequestValues {
    const named = (names: readonly string[], first: number) =>
      Object.fromEntries(names.map((name, at) => [name, this.#slots[first + at]]))
    const requests = named(outcomes, 0)
    return { requests, durations: this.durations.read(), ...named(sumNames, outcomes.length) } as RequestValues
  }

  reading(): RouteReading {
    return { name: this.#name, values: this.read() }
  }

  windowReading(): RouteReading {
    const now = this.read()
    const values = this.#before === undefined ? now : combineAll(now, this.#before, subtract)
    return { name: this.#name, values }
  }
}

/** The slot of a status; outside 100 to 599 it is that of the nearest class. */
function slotOf(status: number): number {
  const hundreds = Math.trunc(status / 100)
  return hundreds > 5 ? 4 : hundreds > 1 ? hundreds - 1 : 0
}
