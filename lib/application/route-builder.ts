/**
 * Builds a route from its record: finds the action and composes it with its middleware. A route whose action cannot
 * run yet answers 500.
 */
import type { CoreContext } from '../http/context.ts'
import type { Reply } from '../http/reply.ts'
import type { ViewMembers } from '../views/feature.ts'
import { compose, type Action, type Chain, type ChainReports } from '../chain/compose.ts'
import { MissingRoomError } from '../config/load-room.ts'
import type { MiddlewareSet } from '../modules/middleware-host.ts'
import { resolveAction, type ResolvedAction, type WebSocketExport } from './action.ts'
import type { Modules } from '../modules/modules.ts'
import type { GoodRecord } from './record.ts'
import type { Route } from '../routing/route.ts'
import type { RouteRecord } from '../routing/route.ts'

/** Builds a route from a record. */
export type BuildRoute = (good: GoodRecord) => Promise<BuiltRoute>

/** A route and its problem, if any. */
export interface BuiltRoute {
  readonly route: Route<Chain>
  /** Why its action or one of its middleware cannot run now, if so. */
  readonly problem: string | undefined
  /** Whether the action is an existing module that does not load, which only a change of its file can fix. */
  readonly broken: boolean
}

/** Builds routes. */
export interface RouteBuilder {
  /**
   * Begins a batch of routes. Routes with the same action and middleware share one chain.
   * @param middleware contains every middleware that the records name
   */
  batch(middleware: MiddlewareSet): BuildRoute
}

/** An action that is a view renders it. */
type ActionContext = CoreContext & ViewMembers

/** Serves modules that export `websocket`. */
interface WebSocketPort {
  /** Call it before `accept`. Rejects with MissingRoomError when this installation has no WebSockets. */
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
  /** Describes the routes in use. Rejects with MissingRoomError. */
  readonly describe: () => Promise<{ below(prefix: string): object }>
}): RouteBuilder {
  const { root, modules, reports, webSockets, describe } = options
  const answerDescription = async (ctx: ActionContext): Promise<Reply> => ctx.json((await describe()).below(ctx.prefix))
  const sources = {
    root,
    modules,
    view: (file: string) => (ctx: ActionContext) => ctx.view(file),
    description: () => describe().then(() => answerDescription),
  }
  return {
    batch(middleware) {
      const programs = new Map<string, ReturnType<typeof load>>()
      return async ({ record, pattern }) => {
        const key = `${record.middleware} ${record.action}`
        const loading = programs.get(key) ?? load(record, middleware)
        programs.set(key, loading)
        const { target, action, problem, broken } = await loading
        return { route: { record, pattern, system: false, target, action }, problem, broken }
      }
    },
  }

  /** Builds the chain for the routes of one action and one list of middleware. */
  async function load(
    record: RouteRecord,
    middleware: MiddlewareSet,
  ): Promise<Omit<BuiltRoute, 'route'> & Required<Pick<Route<Chain>, 'target' | 'action'>>> {
    const names = record.middleware === '' ? [] : record.middleware.split(',')
    const layers = names.map((name) => {
      const run = middleware.byName.get(name)
      if (run === undefined) throw new Error(`Cannot build route "${record.name}": middleware ${name} is not loaded`)
      return { name, run }
    })
    // CORS runs first: without its headers the requesting page could not read a refusal by the others.
    layers.sort((a, b) => Number(b.name === 'SVC_MwCors') - Number(a.name === 'SVC_MwCors'))
    const resolved = await resolveAction<ActionContext>(record.action, sources)
    const missing = resolved.websocket && (await missingOf(webSockets.load()))
    const target = compose(layers, runOf(resolved, webSockets), reports)
    const { state, error, namespace, reference } = resolved
    const broken = state === 'failed' && reference.kind === 'module' && namespace === undefined
    const problem = error?.message ?? missing ?? problemOf(names, middleware)
    return { target, action: () => resolved.ready, problem, broken }
  }
}

/** Returns the message of the MissingRoomError with which `loading` rejects, if any; rejects with any other error. */
async function missingOf(loading: Promise<void>): Promise<string | undefined> {
  try {
    await loading
    return undefined
  } catch (error) {
    if (!(error instanceof MissingRoomError)) throw error
    return error.message
  }
}

/** Returns the problem of a middleware that lacks a setting, or another middleware before it in the list. */
function problemOf(names: readonly string[], { unready, requires }: MiddlewareSet): string | undefined {
  for (const [at, name] of names.entries()) {
    const required = requires.get(name)
    if (unready.has(name)) return `middleware ${name} cannot work: ${unready.get(name)}`
    if (required === undefined || names.slice(0, at).includes(required)) continue
    return `middleware ${name} cannot work: ${required} must come before it in the list`
  }
  return undefined
}

/** Returns the function to call. An action that is ready and has no `websocket` runs directly; others may change. */
function runOf(resolved: ResolvedAction<ActionContext>, webSockets: WebSocketPort): Action {
  if (resolved.state === 'ready' && resolved.websocket === undefined) return resolved.run
  return (ctx: ActionContext) => (ctx.upgrading === undefined ? resolved.run(ctx) : answerHandshake(ctx))

  /** Loads a missing module first: only then is it known whether it serves WebSockets. */
  async function answerHandshake(ctx: ActionContext): Promise<unknown> {
    await resolved.retryMissing()
    if (resolved.websocket === undefined) return resolved.run(ctx)
    await webSockets.load()
    return webSockets.accept(ctx, resolved.websocket)
  }
}
