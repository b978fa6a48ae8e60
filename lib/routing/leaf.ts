/**
 * The routes of one pattern, parameter names aside, and which of them answers which method.
 *
 * Surprise: the first registered that takes a method answers it, so what comes behind a `*` route is never reached
 * until that one is removed. GET also serves HEAD.
 */
import type { Member } from './literal-tree.ts'
import type { Match, Route } from './route.ts'

/** What `allowed` names for a route that takes every method. */
export const ordinaryMethods = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'] as const

/** The routes that end at one node of the tree. */
export class Leaf<T> implements Member {
  readonly isBranch = false
  /** The path of a pattern without parameters, in canonical form; `''` for others. */
  readonly text: string
  /** In the order of registration. */
  readonly routes: Route<T>[] = []
  /** The method that was named first and its match: the whole answer for most leaves, without a load from a list. */
  #firstMethod: string | undefined = undefined
  #firstMatch: Match<T> | undefined = undefined
  /** All methods that are named, and at the same place the match of each: few, so a list is faster than a Map. */
  readonly #methods: string[] = []
  readonly #matches: Match<T>[] = []
  #any: Match<T> | undefined = undefined

  constructor(text: string) {
    this.text = text
  }

  /**
   * The route that answers a method, as a match without values: one object a route, ready when there are no
   * parameters.
   */
  pick(method: string): Match<T> | undefined {
    if (method === this.#firstMethod) return this.#firstMatch
    for (let index = 1; index < this.#methods.length; index += 1) {
      if (this.#methods[index] === method) return this.#matches[index]
    }
    return this.#any
  }

  /** Puts a route behind the others. */
  add(route: Route<T>): void {
    this.routes.push(route)
    this.#index(route)
  }

  /** Takes a route out. Returns true when none is left. */
  remove(route: Route<T>): boolean {
    this.routes.splice(this.routes.indexOf(route), 1)
    this.#methods.length = 0
    this.#matches.length = 0
    this.#any = undefined
    this.#firstMethod = undefined
    this.#firstMatch = undefined
    for (const left of this.routes) this.#index(left)
    return this.routes.length === 0
  }

  /** Adds the methods that find an answer here. */
  addMethodsTo(methods: Set<string>): void {
    for (const method of this.#methods) methods.add(method)
    if (this.#any !== undefined) for (const method of ordinaryMethods) methods.add(method)
  }

  #index(route: Route<T>): void {
    if (this.#any !== undefined) return
    const match = { route, values: [] }
    if (route.record.method === '*') {
      this.#any = match
      return
    }
    for (const method of route.record.method.split(',')) {
      this.#claim(method, match)
      if (method === 'GET') this.#claim('HEAD', match)
    }
  }

  #claim(method: string, match: Match<T>): void {
    if (this.#methods.includes(method)) return
    if (this.#methods.length === 0) {
      this.#firstMethod = method
      this.#firstMatch = match
    }
    this.#methods.push(method)
    this.#matches.push(match)
  }
}
