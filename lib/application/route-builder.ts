/**
 * Makes a route of its record: finds its action and composes it with its middleware. An action that cannot run yet
 * makes a route too, whose requests get 500.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import type { ViewMembers } from '../views/feature.ts'
import { compose, type Action, type Chain, type ChainReports } from '../chain/compose.ts'
import type { MiddlewareSet } from '../modules/middleware-host.ts'
import { resolveAction, type ResolvedAction, type WebSocketExport } from './action.ts'
import type { Modules } from '../modules/modules.ts'
import type { GoodRecord } from './record.ts'
import type { Route } from '../routing/route.ts'
import type { RouteRecord } from '../routing/route.ts'

/** Makes a route of a record. */
export type BuildRoute = (good: GoodRecord) => Promise<BuiltRoute>

/** A route and its problem, if any. */
export interface BuiltRoute {
  readonly route: Route<Chain>
  /** Why its action or one of its middleware cannot run now; undefined when they can. */
  readonly problem: string | undefined
  /** Whether the action is a module that exists and does not load, which only a change of its file will mend. */
  readonly broken: boolean
}

/** Makes routes. */
export interface RouteBuilder {
  /**
   * Begins a batch of routes. Routes with the same action and middleware share one chain.
   * @param middleware has every middleware that the records name
   */
  batch(middleware: MiddlewareSet): BuildRoute
}

/** An action that is a view renders it. */
type ActionContext = CoreContext & ViewMembers

/** Serves the modules that export `websocket`. */
interface WebSocketPort {
  /** Call it before `accept`. */
  load(): Promise<void>
  /** Answers a handshake. Throws HttpError to refuse it. */
  accept(ctx: CoreContext, handlers: WebSocketExport): Reply
}

/** @param options `root`: `paths.root`, absolute */
export function createRouteBuilder(options: {
  readonly root: string
  readonly modules: Pick<Modules, 'load'>
  readonly reports: ChainReports
  readonly webSockets: WebSocketPort
}): RouteBuilder {
  const { root, modules, reports, webSockets } = options
  const sources = { root, modules, view: (file: string) => (ctx: ActionContext) => ctx.view(file) }
  return {
    batch(middleware) {
      const programs = new Map<string, ReturnType<typeof load>>()
      return async ({ record, pattern }) => {
        const key = `${record.middleware} ${record.action}`
        const loading = programs.get(key) ?? load(record, middleware)
        programs.set(key, loading)
        const { target, problem, broken } = await loading
        return { route: { record, pattern, system: false, target }, problem, broken }
      }
    },
  }

  /** Makes what runs for the routes of one action and one list of middleware. */
  async function load(
    record: RouteRecord,
    middleware: MiddlewareSet,
  ): Promise<Omit<BuiltRoute, 'route'> & { readonly target: Chain }> {
    const names = record.middleware === '' ? [] : record.middleware.split(',')
    const layers = names.map((name) => {
      const run = middleware.byName.get(name)
      if (run === undefined) throw new Error(`Cannot build route "${record.name}": middleware ${name} is not loaded`)
      return { name, run }
    })
    // A refusal by the others must have the fields of this one, or the page that asked could not read it.
    layers.sort((a, b) => Number(b.name === 'SVC_MwCors') - Number(a.name === 'SVC_MwCors'))
    const resolved = await resolveAction<ActionContext>(record.action, sources)
    if (resolved.websocket !== undefined) await webSockets.load()
    const target = compose(layers, runOf(resolved, webSockets), reports)
    const { state, error, namespace, reference } = resolved
    const broken = state === 'failed' && reference.kind === 'module' && namespace === undefined
    return { target, problem: error?.message ?? problemOf(names, middleware), broken }
  }
}

/** The problem of a middleware that lacks a setting, or another middleware before it in the list. */
function problemOf(names: readonly string[], { unready, requires }: MiddlewareSet): string | undefined {
  for (const [at, name] of names.entries()) {
    const required = requires.get(name)
    if (unready.has(name)) return `middleware ${name} cannot work: ${unready.get(name)}`
    if (required === undefined || names.slice(0, at).includes(required)) continue
    return `middleware ${name} cannot work: ${required} must stand before it in the list`
  }
  return undefined
}

/** An action that is ready and serves only plain requests is called directly; a missing one may become ready later. */
function runOf(resolved: ResolvedAction<ActionContext>, webSockets: WebSocketPort): Action {
  if (resolved.state === 'ready' && resolved.websocket === undefined) return resolved.run
  return (ctx: ActionContext) => (ctx.upgrading === undefined ? resolved.run(ctx) : answerHandshake(ctx))

  /** Whether a module that was missing serves WebSockets shows only when it is loaded. */
  async function answerHandshake(ctx: ActionContext): Promise<unknown> {
    await resolved.lookAgain()
    if (resolved.websocket === undefined) return resolved.run(ctx)
    await webSockets.load()
    return webSockets.accept(ctx, resolved.websocket)
  }
}
