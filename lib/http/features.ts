/**
 * Features: members that other rooms (sessions, views, logs, events) add to the context. The context class of a server
 * is derived once, when the server is built. A member is created when a request first uses it and cached for that
 * request, so `make` may close over state of the request.
 */
import { CoreContext, type ContextServices } from './context.ts'

/** One member that a feature adds. */
export interface Member {
  readonly name: string
  /** The specification's names for it. */
  readonly aliases?: readonly string[]
  /** Whether it is created anew at each use, since it may change during a request. */
  readonly isFresh?: true
  /** The names under which views see the member: its name, or its aliases. Default: views do not see it. */
  readonly inViews?: 'name' | 'aliases'
  /**
   * Makes the member for one request. Functions must not depend on `this`. Declared as a method, so that a feature may
   * require a context with the members of others: `CoreContext & SessionMembers`.
   */
  make(ctx: CoreContext): unknown
}

/** The members that one room adds. */
export interface Feature {
  /** For messages. */
  readonly name: string
  readonly members: readonly Member[]
}

/** A context class of one server. */
export type ContextClass = typeof CoreContext

/** The names that a view sees in addition to its data: getters that read the context. */
export type ViewScope = Readonly<Record<string, unknown>>

/** A context class, and the scope of views for its contexts. */
export interface ContextParts {
  readonly ContextClass: ContextClass
  readonly viewScope: (ctx: CoreContext) => ViewScope
}

/** Built-in members of the context that views see. */
const plainMembers = ['params', 'query', 'path', 'prefix', 'method', 'state'] as const

/**
 * Creates a server's context class.
 * @throws Error if two features add the same name, or a feature adds the name of a method or getter of the context
 */
export function createContextClass(features: readonly Feature[], services: ContextServices): ContextParts {
  const ContextClass = class extends CoreContext {}
  Object.defineProperty(ContextClass.prototype, 'services', { value: services })
  // A class: `Object.create` with a descriptor takes 10 times as long.
  const Scope = class {
    readonly [contextKey]: CoreContext
    constructor(ctx: CoreContext) {
      this[contextKey] = ctx
    }
  }
  const scope = Scope.prototype as object
  Reflect.deleteProperty(scope, 'constructor') // Views see only the names below, nothing inherited.
  Object.setPrototypeOf(scope, null)
  expose(scope, 'ctx', (ctx) => ctx)
  for (const name of plainMembers) expose(scope, name, (ctx) => ctx[name])

  let index = 0
  for (const feature of features) {
    for (const member of feature.members) {
      const slot = index++
      const get = (ctx: CoreContext): unknown => (member.isFresh ? member.make(ctx) : ctx.memo(slot, member.make))
      const aliases = member.aliases ?? []
      for (const name of [member.name, ...aliases]) {
        if (name in ContextClass.prototype) {
          throw new Error(`Feature ${feature.name} adds ${name} to the context, which already has it`)
        }
        Object.defineProperty(ContextClass.prototype, name, {
          configurable: true,
          get(this: CoreContext) {
            return get(this)
          },
        })
      }
      if (member.inViews === 'name') expose(scope, member.name, get)
      if (member.inViews === 'aliases') for (const alias of aliases) expose(scope, alias, get)
    }
  }
  // The getters are defined above, where the compiler does not see them.
  return { ContextClass, viewScope: (ctx) => new Scope(ctx) as object as ViewScope }
}

const contextKey = Symbol('context')

function expose(scope: object, name: string, get: (ctx: CoreContext) => unknown): void {
  Object.defineProperty(scope, name, {
    enumerable: true,
    get(this: { [contextKey]: CoreContext }) {
      return get(this[contextKey])
    },
  })
}
