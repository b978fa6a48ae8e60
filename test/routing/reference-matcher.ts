/**
 * The rules of matching, written as plainly as possible, as a reference for the router: every route is tried on every
 * path, and the best match is found by comparing the matches segment by segment.
 */
import type { Segment } from '../../lib/routing/pattern.ts'
import type { Route } from '../../lib/routing/route.ts'

/** The result of the reference: the name of the route and its values, or why there is none. */
export type Answer = { readonly name: string; readonly values: readonly string[] } | 'bad encoding' | undefined

const ordinaryMethods = ['DELETE', 'GET', 'PATCH', 'POST', 'PUT']

/** Finds a match by trying all routes, in order of registration. */
export function referenceFind(routes: readonly Route<unknown>[], method: string, path: string): Answer {
  const matching = routes.filter((route) => takes(route, method) && valuesOf(route, path) !== undefined)
  const [best] = matching.sort((one, other) => compare(one.pattern.segments, other.pattern.segments))
  if (best === undefined) return undefined
  try {
    return { name: best.record.name, values: (valuesOf(best, path) ?? []).map((value) => decodeURIComponent(value)) }
  } catch {
    return 'bad encoding'
  }
}

/** Returns the matching methods, and OPTIONS, sorted. */
export function referenceAllowed(routes: readonly Route<unknown>[], path: string): string[] {
  const methods = new Set<string>()
  for (const route of routes.filter((one) => valuesOf(one, path) !== undefined)) {
    const list = route.record.method === '*' ? ordinaryMethods : route.record.method.split(',')
    for (const method of list) methods.add(method)
    if (list.includes('GET')) methods.add('HEAD')
    methods.add('OPTIONS')
  }
  return [...methods].sort()
}

function takes(route: Route<unknown>, method: string): boolean {
  const list = route.record.method.split(',')
  return list.includes('*') || list.includes(method) || (method === 'HEAD' && list.includes('GET'))
}

/** Returns the raw values, or undefined if the pattern does not match. */
function valuesOf(route: Route<unknown>, path: string): string[] | undefined {
  const values: string[] = []
  let left = path.slice(1)
  let over = left === ''
  for (const segment of route.pattern.segments) {
    if (segment.kind === 'rest') return [...values, left]
    if (over) return undefined
    const part = left.split('/', 1)[0] ?? ''
    if (part === '') return undefined
    if (segment.kind === 'parameter') values.push(part)
    else if (decoded(part) !== segment.text) return undefined
    left = left.slice(part.length + 1)
    over = left === ''
  }
  return over ? values : undefined
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Negative if the first has precedence: at the first difference, the end of a pattern, then literal, parameter, rest. */
function compare(one: readonly Segment[], other: readonly Segment[]): number {
  for (let index = 0; index < Math.max(one.length, other.length); index += 1) {
    const difference = rank(one[index]) - rank(other[index])
    if (difference !== 0) return difference
  }
  return 0
}

function rank(segment: Segment | undefined): number {
  return segment === undefined ? 0 : ['literal', 'parameter', 'rest'].indexOf(segment.kind) + 1
}
