/**
 * Makes a route ready to run of its record: finds its action and joins it with its middleware.
 *
 * Surprise: an action that cannot run yet still makes a route. Its requests get 500 with the reason in the log, and a
 * file that was missing serves once it is there.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import type { ViewMembers } from '../views/feature.ts'
import { compose, type Action, type Chain, type ChainReports } from '../chain/compose.ts'
import type { MiddlewareSet } from './middleware-host.ts'
import { createActions, type ResolvedAction, type WebSocketExport } from './action.ts'
import type { Modules } from './modules.ts'
import type { GoodRecord } from '../routing/record.ts'
import type { Route } from '../routing/registry.ts'
import type { RouteRecord } from '../routing/route.ts'

/** A route, and what is wrong with it. */
export interface BuiltRoute {
  readonly route: Route<Chain>
  /** Why its action or one of its middleware cannot run now; undefined when they can. */
  readonly problem: string | undefined
  /** Whether the action is a module that is there and does not load, which time alone will not mend. */
  readonly broken: boolean
}

/** Makes a route of a record. */
export type BuildRoute = (good: GoodRecord) => Promise<BuiltRoute>

/** Makes routes. */
export interface RouteBuilder {
  /**
   * Begins a batch of routes. Those with one action and the same middleware share what runs.
   * @param middleware has every middleware that the records name
   */
  batch(middleware: MiddlewareSet): BuildRoute
}

/** An action that is a view renders it. */
type ActionContext = CoreContext & ViewMembers

/** What runs for the routes of one action and one list of middleware. */
type Program = Omit<BuiltRoute, 'route'> & { readonly target: Chain }

/**
 * @param options `root`: `paths.root`, absolute
 */
export function createRouteBuilder(options: {
  readonly root: string
  readonly modules: Modules
  readonly reports: ChainReports
  /** Answers a handshake to a module that exports `websocket`. Throws HttpError for one that is refused. */
  readonly acceptWebSocket: (ctx: CoreContext, handlers: WebSocketExport) => Reply
}): RouteBuilder {
  const { root, modules, reports, acceptWebSocket } = options
  const actions = createActions<ActionContext>({ root, modules, view: (file) => (ctx) => ctx.view(file) })
  return {
    batch(middleware) {
      const programs = new Map<string, Promise<Program>>()
      return async ({ record, pattern }) => {
        const key = `${record.middleware} ${record.action}`
        const loading = programs.get(key) ?? load(record, middleware)
        programs.set(key, loading)
        const { target, problem, broken } = await loading
        return { route: { record, pattern, system: false, target }, problem, broken }
      }
    },
  }

  async function load(record: RouteRecord, middleware: MiddlewareSet): Promise<Program> {
    const names = record.middleware === '' ? [] : record.middleware.split(',')
    const layers = names.map((name) => {
      const run = middleware.byName.get(name)
      if (run === undefined) throw new Error(`Cannot build route "${record.name}": middleware ${name} is not loaded`)
      return { name, run }
    })
    const resolved = await actions.resolve(record.action)
    const target = compose(layers, runOf(resolved, acceptWebSocket), reports)
    const { state, error, namespace, reference } = resolved
    const broken = state === 'failed' && reference.kind === 'module' && namespace === undefined
    return { target, problem: error?.message ?? problemOf(names, middleware), broken }
  }
}

/** What a route's middleware needs and does not have: a setting, or another one before it. */
function problemOf(names: readonly string[], { unready, requires }: MiddlewareSet): string | undefined {
  for (const [at, name] of names.entries()) {
    const required = requires.get(name)
    if (unready.has(name)) return `middleware ${name} cannot work: ${unready.get(name)}`
    if (required === undefined || names.slice(0, at).includes(required)) continue
    return `middleware ${name} cannot work: ${required} must stand before it in the list`
  }
  return undefined
}

/** What is ready and serves plain requests alone is called directly; what was missing may become ready later. */
function runOf(
  resolved: ResolvedAction<ActionContext>,
  acceptWebSocket: (ctx: CoreContext, handlers: WebSocketExport) => Reply,
): Action {
  if (resolved.state === 'ready' && resolved.websocket === undefined) return resolved.run
  const answer = (ctx: ActionContext): unknown => {
    const { websocket } = resolved
    const isHandshake = ctx.upgrading !== undefined && websocket !== undefined
    return isHandshake ? acceptWebSocket(ctx, websocket) : resolved.run(ctx)
  }
  // Whether a module that was missing serves WebSockets shows when it is loaded, before it is asked for an answer.
  return (ctx: ActionContext) => {
    const isEarly = ctx.upgrading !== undefined && resolved.state === 'missing'
    return isEarly ? resolved.lookAgain().then(() => answer(ctx)) : answer(ctx)
  }
}
