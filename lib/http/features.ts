/**
 * The table of features: what the parts of a server (logs, views, sessions, flash, streams) add to the context.
 * The class of a server's contexts is made of it once, when the server is built; a member costs nothing until a request
 * asks for it.
 *
 * Surprise: a member is made at its first use and then kept for that request, so `make` may hold state of the request.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Context } from './context.ts'
import { HeaderSections } from './header-section.ts'
import type { RequestServices } from './received-request.ts'

/** One member that a feature adds. */
export interface Member {
  /** Its name in the context, by the field's standard term. */
  readonly name: string
  /** The specification's own names for the same. */
  readonly aliases?: readonly string[]
  /** Whether views see it: under its name, its aliases, or not at all. */
  readonly inViews?: 'name' | 'aliases'
  /** Makes the member for one request. Functions must not depend on `this`. */
  readonly make: (ctx: Context) => unknown
}

/** What one part of the server adds. */
export interface Feature {
  /** For messages: which part it is. */
  readonly name: string
  readonly members: readonly Member[]
}

/** A context class of one server. */
export type ContextClass = typeof Context

/** What a view sees besides its data: the features' names, as getters that ask the context. */
export type ViewScope = Readonly<Record<string, unknown>>

/** What `createContextClass` makes. */
export interface ContextParts {
  readonly ContextClass: ContextClass
  /** The names that a view may use besides its data. */
  readonly viewScope: (ctx: Context) => ViewScope
}

/** Members of the context itself that views see. */
const plainMembers = ['params', 'query', 'path', 'method', 'state'] as const

/**
 * Makes a server's context class.
 * @throws Error when two features add the same name, or one takes a name of the context itself
 */
export function createContextClass(features: readonly Feature[], services: RequestServices): ContextParts {
  const ContextClass = class extends Context {}
  Object.defineProperties(ContextClass.prototype, {
    services: { value: services },
    headerSections: { value: new HeaderSections() },
  })
  // A class, since an object made by `Object.create` with a descriptor takes 10 times as long.
  const Scope = class {
    readonly [contextKey]: Context
    constructor(ctx: Context) {
      this[contextKey] = ctx
    }
  }
  const scope = Scope.prototype as object
  Reflect.deleteProperty(scope, 'constructor') // It is no name of a view, and neither is what every object has.
  Object.setPrototypeOf(scope, null)
  expose(scope, 'ctx', (ctx) => ctx)
  for (const name of plainMembers) expose(scope, name, (ctx) => ctx[name])

  const own = new Set([...Object.keys(new Context(blankRequest, blankResponse)), 'services', 'headerSections'])
  let index = 0
  for (const feature of features) {
    for (const member of feature.members) {
      const slot = index++
      const get = (ctx: Context): unknown => ctx.memo(slot, member.make)
      const aliases = member.aliases ?? []
      for (const name of [member.name, ...aliases]) {
        if (name in ContextClass.prototype || own.has(name)) {
          throw new Error(`Feature ${feature.name} adds ${name} to the context, which has it already`)
        }
        Object.defineProperty(ContextClass.prototype, name, {
          configurable: true,
          get(this: Context) {
            return get(this)
          },
        })
      }
      if (member.inViews === 'name') expose(scope, member.name, get)
      if (member.inViews === 'aliases') for (const alias of aliases) expose(scope, alias, get)
    }
  }
  // The names are on the prototype, where the compiler does not see them.
  return { ContextClass, viewScope: (ctx) => new Scope(ctx) as object as ViewScope }
}

const contextKey = Symbol('context')
/** As much of a request as a context's constructor looks at: for the names of the fields that it sets. */
const blankRequest = { method: 'GET', url: '/', rawHeaders: [] as string[] } as IncomingMessage
const blankResponse = {} as ServerResponse

function expose(scope: object, name: string, get: (ctx: Context) => unknown): void {
  Object.defineProperty(scope, name, {
    enumerable: true,
    get(this: { [contextKey]: Context }) {
      return get(this[contextKey])
    },
  })
}
