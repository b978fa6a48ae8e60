/**
 * A reading is the value of every metric of a process at one moment, and can be sent as JSON. A window is the
 * difference of two readings, a total over processes is the sum of their readings.
 */
import { identityOf, subtractAppMetrics, sumOfAppMetrics } from './app-readings.ts'
import type { AppMetricReading, TotalRows } from './app-readings.ts'
import { noDurations } from './histogram.ts'
import { maxNames, otherRoutesName, type RouteReading } from './metrics.ts'
import { metricTable, readMetrics, type MetricName, type MetricSources, type MetricValues } from './table.ts'
import { add, combineAll, round3, subtract, type Operation } from './values.ts'

/** The metrics of a process, or of several together: counters since the start or in a window, gauges of the moment. */
export interface Reading {
  /** When the process started, in milliseconds since 1970. */
  readonly startedAtMs: number
  /** Since the start of the process. */
  readonly uptimeSeconds: number
  /** The period that the counters cover: the uptime, or the length of the window. */
  readonly seconds: number
  readonly values: MetricValues
  /** The routes that were requested, in the order of their first requests. */
  readonly routes: readonly RouteReading[]
  /** Those of the application. */
  readonly appMetrics: readonly AppMetricReading[]
  /** Messages for the operator. */
  readonly warnings: readonly string[]
}

/** The readings of a server. */
export interface ServerReading {
  /** The process that represents the server: the only one, or the primary. */
  readonly pid: number
  readonly total: Reading
  /** The parts of the total; absent if the server has one process. */
  readonly parts?: {
    readonly processes: readonly ProcessReading[]
    /** The sum of the processes that have ended. */
    readonly ended: { readonly count: number; readonly reading: Reading | undefined }
  }
}

/** The reading of one of several processes. */
export interface ProcessReading {
  /** `primary`, or the number of a worker. */
  readonly id: string
  /** 0 if there is no process: it could not be started or is waiting to be restarted. */
  readonly pid: number
  /** False if it did not respond in time, and the reading is an older one. */
  readonly responding: boolean
  /** True if it is loading the application and cannot respond yet. */
  readonly starting?: boolean
  /** Without routes; undefined if it has never responded. */
  readonly reading: Reading | undefined
}

/**
 * Reads the metrics of this process.
 * @param routes the routes of the reading
 * @param appMetrics the metrics of the application
 */
export function readProcess(
  sources: MetricSources,
  routes: readonly RouteReading[],
  appMetrics: readonly AppMetricReading[],
): Reading {
  const { startedAtMs, uptimeSeconds } = sources.metrics
  const [values, warnings] = [readMetrics(sources), sources.warnings()]
  return { startedAtMs, uptimeSeconds, seconds: uptimeSeconds, values, routes, appMetrics, warnings }
}

/**
 * Returns the window between two readings of the same processes.
 * @param before undefined if the window began with the process
 */
export function difference(now: Reading, before: Reading | undefined): Reading {
  if (before === undefined) return now
  const known = new Map(before.routes.map((route) => [route.name, route]))
  return {
    ...now,
    seconds: Math.max(now.seconds - before.seconds, 0),
    values: combineAll(now.values, before.values, subtractCounters),
    appMetrics: subtractAppMetrics(now.appMetrics, before.appMetrics),
    routes: now.routes.flatMap((route) => {
      const earlier = known.get(route.name)
      if (earlier === undefined) return route
      // The same object: the route was not requested in between.
      return earlier === route ? [] : { ...route, values: combineAll(route.values, earlier.values, subtract) }
    }),
  }
}

/**
 * Returns the total of several processes, at least one. The start is the earliest, times are the longest, and warnings
 * are not repeated.
 */
export function sumOf(readings: readonly Reading[]): Reading {
  return {
    startedAtMs: Math.min(...readings.map(({ startedAtMs }) => startedAtMs)),
    uptimeSeconds: Math.max(...readings.map(({ uptimeSeconds }) => uptimeSeconds)),
    seconds: Math.max(...readings.map(({ seconds }) => seconds)),
    values: readings.map(({ values }) => values).reduce((a, b) => combineAll(a, b, add)),
    routes: sumOfRoutes(readings.flatMap(({ routes }) => routes)),
    appMetrics: sumOfAppMetrics(readings.map(({ appMetrics }) => appMetrics)),
    warnings: [...new Set(readings.flatMap(({ warnings }) => warnings))],
  }
}

/** The share of time in which the event loop was active, 0 to 1 with three decimals. */
export function utilizationOf({ loopActive, loopIdle }: MetricValues): number {
  return loopActive === 0 ? 0 : round3(loopActive / (loopActive + loopIdle))
}

/** The reading without its event loop: an idle process that serves no requests would mask the others in a total. */
export function withoutEventLoop(reading: Reading): Reading {
  return { ...reading, values: { ...reading.values, loopDelay: noDurations, loopActive: 0, loopIdle: 0 } }
}

/** The reading without gauges and warnings, for a process that has ended. */
export function withoutGauges(reading: Reading): Reading {
  const { values } = reading
  const zero: Operation = (value, same, name) => (isGauge(name) ? subtract(value, same, name) : value)
  const appMetrics = reading.appMetrics.filter(({ kind }) => kind === 'counter')
  return { ...reading, values: combineAll(values, values, zero), appMetrics, warnings: [] }
}

/**
 * Returns the reading with at most as many routes as one process has: the routes past the limit become one, `(other)`.
 * So the total stays bounded, however many processes come and go.
 */
export function boundRoutes(reading: Reading): Reading {
  const named = reading.routes.filter(({ name }) => name !== otherRoutesName)
  if (named.length < maxNames) return reading
  const others = reading.routes.filter(({ name }) => name === otherRoutesName)
  const past = named.slice(maxNames - 1).map((route) => ({ ...route, name: otherRoutesName }))
  return { ...reading, routes: sumOfRoutes([...named.slice(0, maxNames - 1), ...others, ...past]) }
}

/** Returns the reading with the metrics of the application bounded by `rows`. */
export function boundRows(reading: Reading, rows: TotalRows): Reading {
  return { ...reading, appMetrics: rows.bound(reading.appMetrics) }
}

/** Returns the reading with only these metrics of the application. */
export function withMetrics(reading: Reading, identities: ReadonlySet<string>): Reading {
  return { ...reading, appMetrics: reading.appMetrics.filter((metric) => identities.has(identityOf(metric))) }
}

/** Adds up the routes of the same name. */
function sumOfRoutes(routes: readonly RouteReading[]): RouteReading[] {
  const byName = new Map<string, RouteReading>()
  for (const route of routes) {
    const { name, values } = route
    const known = byName.get(name)
    byName.set(name, known === undefined ? route : { name, values: combineAll(known.values, values, add) })
  }
  return [...byName.values()]
}

const subtractCounters: Operation = (now, before, name) => (isGauge(name) ? now : subtract(now, before, name))

function isGauge(name: string): boolean {
  return metricTable[name as MetricName].kind === 'gauge' // The values of a reading have the names of the table.
}
