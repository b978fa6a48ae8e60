/**
 * The routes of one pattern, whatever the names of its parameters, and which of them answers which method.
 *
 * The first route that takes a method answers it, so those after a `*` route are not reached. GET also serves HEAD.
 */
import type { Match, Route } from './route.ts'

/** The methods that `allowed` names for a route that takes every method. */
export const ordinaryMethods = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const

/** The routes that end at one node of the tree. */
export class Leaf<T> {
  /** By method, the match of the route that answers it; `*` for every other method. The first route's come first. */
  readonly #matches = new Map<string, Match<T>>()

  /** The route that was added first. */
  get first(): Route<T> | undefined {
    const [match] = this.#matches.values()
    return match?.route
  }

  /** The route that answers a method, as a match without values, which is made once a route. */
  pick(method: string): Match<T> | undefined {
    return this.#matches.get(method) ?? this.#matches.get('*')
  }

  /** Adds a route after the others. */
  add(route: Route<T>): void {
    if (this.#matches.has('*')) return
    const match = { route, values: [] }
    for (const method of methodsTaken(route.record.method)) {
      if (!this.#matches.has(method)) this.#matches.set(method, match)
    }
  }

  /** Adds the methods that a route here takes. */
  addMethodsTo(methods: Set<string>): void {
    for (const [method, { route }] of this.#matches) {
      if (method === '*') for (const ordinary of ordinaryMethods) methods.add(ordinary)
      else if (method !== 'HEAD' || route.refusesHead !== true) methods.add(method)
    }
  }
}

/** The methods of a record, and HEAD when GET is among them. */
function methodsTaken(methods: string): string[] {
  const list = methods.split(',')
  return list.includes('GET') && !list.includes('HEAD') ? [...list, 'HEAD'] : list
}
