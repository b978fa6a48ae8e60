/**
 * Merges the figures of several processes into those of a server as a whole.
 *
 * Surprise: the event loop of a primary is left out. It serves no request, so its idle time would make that of the
 * workers look small.
 */
import { mergeDurations } from './duration-cells.ts'
import type { EventLoopFigures } from './event-loop.ts'
import { noFigures, type Figures, type Interval, type ProcessFigures } from './figures.ts'
import { maxNames, otherRoutesName, type RouteFigures } from './route-metrics.ts'

/**
 * The figures of several processes as if they were one. Counters and gauges are summed, histograms merged
 * cell by cell; an alert of one is one of all, and so is a warning. The start is the first, uptime and window are the
 * longest. A list of one gives its figures as they are.
 */
export function mergeFigures(list: readonly (Figures & Partial<Pick<ProcessFigures, 'role'>>)[]): Figures {
  const [first = noFigures] = list
  if (list.length < 2) return first
  const requests = list.map((each) => each.requests)
  const loops = list.filter(({ role }) => role !== 'primary').map(({ eventLoop }) => eventLoop)
  return {
    requests: {
      startedAtMs: requests.map(({ startedAtMs }) => startedAtMs).reduce(earlier),
      uptimeSeconds: Math.max(...requests.map(({ uptimeSeconds }) => uptimeSeconds)),
      windowSeconds: Math.max(...requests.map(({ windowSeconds }) => windowSeconds)),
      requests: sumOf(requests.map((each) => each.requests)),
      latency: mergeDurations(requests.map(({ latency }) => latency)),
      routes: mergeRoutes(requests.map(({ routes }) => routes)),
    },
    now: sumOf(list.map(({ now }) => now)),
    eventLoop: {
      window: mergeEventLoops(loops.map(({ window }) => window)),
      totals: sumOf([noFigures.eventLoop.totals, ...loops.map(({ totals }) => totals)]),
    },
    waits: {
      http: mergeDurations(list.map(({ waits }) => waits.http)),
      rest: mergeDurations(list.map(({ waits }) => waits.rest)),
    },
    counters: {
      window: sumOf(list.map(({ counters }) => counters.window)),
      totals: sumOf(list.map(({ counters }) => counters.totals)),
    },
    refused: sumOf(list.map(({ refused }) => refused)),
    ended: sumOf(list.map(({ ended }) => ended)),
    warnings: [...new Set(list.flatMap(({ warnings }) => warnings))],
  }
}

/**
 * What happened in several processes.
 * @param seconds how long the interval was for the server as a whole: a process that could not be asked last time tells
 *   of a longer one
 */
export function mergeIntervals(list: readonly Interval[], seconds: number): Interval {
  const requests = list.map((each) => each.requests)
  return {
    requests: {
      seconds,
      requests: requests.reduce((sum, each) => sum + each.requests, 0),
      errors: requests.reduce((sum, { errors }) => sum + errors, 0),
      bytesOut: requests.reduce((sum, { bytesOut }) => sum + bytesOut, 0),
      latency: mergeDurations(requests.map(({ latency }) => latency)),
    },
    eventLoop: mergeEventLoops(list.map(({ eventLoop }) => eventLoop)),
  }
}

/** Adds up groups of numbers of one shape, at least one: each number with those of its name. True is what is true in any. */
export function sumOf<Group>(groups: readonly Group[]): Group {
  return groups.reduce((sum, each) => add(sum, each) as Group) // It has the shape of both.
}

/**
 * Figures with not more routes than a process tells apart: those past the bound are one, `(other)`. So the figures of any
 * number of processes that ended, one after the other, have a bound.
 */
export function boundRoutes(figures: Figures): Figures {
  const named = figures.requests.routes.filter(({ name }) => name !== otherRoutesName)
  if (named.length < maxNames) return figures
  const others = figures.requests.routes.filter(({ name }) => name === otherRoutesName)
  const sum = [...others, ...named.slice(maxNames - 1)].reduce((all, each) => mergeRoute(all, each))
  const routes = [...named.slice(0, maxNames - 1), { ...sum, name: otherRoutesName }]
  return { ...figures, requests: { ...figures.requests, routes } }
}

/** Two routes as if they were one, of the first's name. */
function mergeRoute(a: RouteFigures, b: RouteFigures): RouteFigures {
  return {
    name: a.name,
    byOutcome: addClasses(a.byOutcome, b.byOutcome),
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
    durations: {
      cumulative: a.durations.cumulative.map((count, at) => count + (b.durations.cumulative[at] ?? 0)),
      count: a.durations.count + b.durations.count,
      sumSeconds: a.durations.sumSeconds + b.durations.sumSeconds,
    },
    window: {
      count: a.window.count + b.window.count,
      errors: a.window.errors + b.window.errors,
      latency: mergeDurations([a.window.latency, b.window.latency]),
    },
  }
}

function mergeRoutes(lists: readonly (readonly RouteFigures[])[]): RouteFigures[] {
  const byName = new Map<string, RouteFigures>()
  for (const route of lists.flat()) {
    const known = byName.get(route.name)
    byName.set(route.name, known === undefined ? route : mergeRoute(known, route))
  }
  return [...byName.values()]
}

/** The earlier of two times, of which one may not be known. */
function earlier(a: number, b: number): number {
  return a === 0 || b === 0 ? Math.max(a, b) : Math.min(a, b)
}

function addClasses(a: RouteFigures['byOutcome'], b: RouteFigures['byOutcome']): RouteFigures['byOutcome'] {
  return {
    '1xx': a['1xx'] + b['1xx'],
    '2xx': a['2xx'] + b['2xx'],
    '3xx': a['3xx'] + b['3xx'],
    '4xx': a['4xx'] + b['4xx'],
    '5xx': a['5xx'] + b['5xx'],
    left: a.left + b.left,
  }
}

function mergeEventLoops(list: readonly EventLoopFigures[]): EventLoopFigures {
  return {
    delay: mergeDurations(list.map(({ delay }) => delay)),
    activeUs: list.reduce((sum, { activeUs }) => sum + activeUs, 0),
    idleUs: list.reduce((sum, { idleUs }) => sum + idleUs, 0),
  }
}

function add(a: unknown, b: unknown): unknown {
  if (typeof a === 'number') return a + Number(b)
  if (typeof a === 'boolean') return a || b
  if (Array.isArray(a)) return a.map((each, at) => add(each, (b as readonly unknown[])[at])) // Both are of one shape.
  const other = b as Readonly<Record<string, unknown>> // As above.
  return Object.fromEntries(Object.entries(a as object).map(([name, each]) => [name, add(each, other[name])]))
}
