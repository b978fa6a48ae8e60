/**
 * The routes of one pattern, whatever the names of its parameters, and which of them answers which method.
 *
 * The first route that takes a method answers it, so those after a `*` route are not reached. GET
 * also serves HEAD.
 */
import type { Match, Route } from './route.ts'

/** The methods that `allowed` names for a route that takes every method. */
export const ordinaryMethods = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const

/** The routes that end at one node of the tree. */
export class Leaf<T> {
  /** In the order of registration. */
  #routes: Route<T>[] = []
  /** The first method and its match: all that most leaves have, without a load from a list. */
  #firstMethod: string | undefined = undefined
  #firstMatch: Match<T> | undefined = undefined
  /** The methods, and the match of each at the same index: there are few, so lists are faster than a Map. */
  #methods: string[] = []
  #matches: Match<T>[] = []
  #any: Match<T> | undefined = undefined

  /** In the order of registration. */
  get routes(): readonly Route<T>[] {
    return this.#routes
  }

  /** The route that answers a method, as a match without values, which is made once a route. */
  pick(method: string): Match<T> | undefined {
    if (method === this.#firstMethod) return this.#firstMatch
    for (let index = 1; index < this.#methods.length; index += 1) {
      if (this.#methods[index] === method) return this.#matches[index]
    }
    return this.#any
  }

  /** Adds a route after the others. */
  add(route: Route<T>): void {
    // A list literal takes a tenth of the memory of a list that grows from empty.
    if (this.#routes.length === 0) this.#routes = [route]
    else this.#routes.push(route)
    this.#index(route)
  }

  /** Adds the methods that a route here takes. */
  addMethodsTo(methods: Set<string>): void {
    for (const [at, method] of this.#methods.entries()) {
      if (method !== 'HEAD' || this.#matches[at]?.route.refusesHead !== true) methods.add(method)
    }
    if (this.#any !== undefined) for (const method of ordinaryMethods) methods.add(method)
  }

  #index(route: Route<T>): void {
    if (this.#any !== undefined) return
    const match = { route, values: [] }
    if (route.record.method === '*') {
      this.#any = match
      return
    }
    const methods = methodsTaken(route.record.method)
    if (this.#methods.length > 0) return methods.forEach((method) => this.#claim(method, match))
    this.#firstMethod = methods[0]
    this.#firstMatch = match
    this.#methods = methods
    this.#matches = new Array<Match<T>>(methods.length).fill(match)
  }

  #claim(method: string, match: Match<T>): void {
    if (this.#methods.includes(method)) return
    this.#methods.push(method)
    this.#matches.push(match)
  }
}

/** The methods of a record, and HEAD when GET is among them. */
function methodsTaken(methods: string): string[] {
  const list = methods.split(',')
  return list.includes('GET') && !list.includes('HEAD') ? [...list, 'HEAD'] : list
}
