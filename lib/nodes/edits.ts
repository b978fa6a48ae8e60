/**
 * What a change that one node has carried out makes of the state that all nodes have in common.
 */
import type { Command } from '../control/commands.ts'
import type { Change } from '../control/relay.ts'
import { traceModules } from '../log/trace.ts'
import {
  adminOf,
  fieldOfRoute,
  fieldOfTrace,
  routeOf,
  routesOf,
  textOfAdmin,
  traceOf,
  valueOf,
  type Edits,
  type RouteEntry,
  type State,
  type TraceEntry,
} from './state.ts'

const noEdits: Edits = { set: [], removed: [] }

/** Whether a change is of all nodes. The others are about the process, its files, its certificate. */
export function isOfAllNodes({ command: { type } }: Change): boolean {
  return /^(routes|trace|admin)\./.test(type)
}

/**
 * What a change that was carried out on one node makes of the state.
 * @param at the number of the change, and the engine's time in milliseconds
 * @throws DamagedStateError
 */
export function editsOf(state: State, change: Change, at: { readonly seq: number; readonly nowMs: number }): Edits {
  const { command } = change
  switch (command.type) {
    case 'routes.add':
      return added(state, command as Command<'routes.add'>, at.seq)
    case 'routes.delete':
      return deleted(state, (command as Command<'routes.delete'>).name, at.seq)
    case 'routes.reload':
      return { set: [['reload', String(at.seq)]], removed: endedByReload(state, change.added) }
    case 'trace.set':
      return switched(state, command as Command<'trace.set'>, at.nowMs)
    case 'admin.setup':
    case 'admin.secret':
      return signedBy(state, change)
    default:
      return noEdits
  }
}

function added(state: State, { record, persist }: Command<'routes.add'>, seq: number): Edits {
  const name = String((record as { readonly name?: unknown }).name) // It has been registered under it.
  const hides = routeOf(state, name)
  const entry: RouteEntry = {
    seq,
    record,
    ...(persist && { lasts: true }),
    ...(hides !== undefined && { hides: true }),
  }
  return { set: [[fieldOfRoute(name), JSON.stringify(entry)]], removed: [] }
}

function deleted(state: State, name: string, seq: number): Edits {
  const field = fieldOfRoute(name)
  const entry = routeOf(state, name)
  const isOnlyHere = entry?.record !== undefined && entry.lasts !== true && entry.hides !== true
  if (isOnlyHere) return { set: [], removed: [field] }
  const gone: RouteEntry = { seq, ...(entry?.lasts === true && { lasts: true }) }
  return { set: [[field, JSON.stringify(gone)]], removed: [] }
}

/**
 * The routes that a reload ends. What lasts stays, and so does that it was deleted, for the nodes whose file still has it;
 * unless a file has it anew.
 */
function endedByReload(state: State, nowThere: readonly string[] = []): string[] {
  return routesOf(state)
    .filter(({ name, entry }) => entry.lasts !== true || (entry.record === undefined && nowThere.includes(name)))
    .map(({ field }) => field)
}

function switched(state: State, command: Command<'trace.set'>, nowMs: number): Edits {
  const { module: named, enabled: on, ttlSeconds } = command
  const modules = named === 'all' ? traceModules : [named]
  return {
    set: modules.map((module) => {
      const before = traceOf(state, module)
      const wasUntil = before?.until !== undefined && before.until > nowMs
      const back = wasUntil ? before.back : before === undefined ? undefined : valueOf(before, nowMs)
      const ends = ttlSeconds === undefined ? {} : { until: nowMs + ttlSeconds * 1000, ...(back !== undefined && { back }) }
      return [fieldOfTrace(module), JSON.stringify({ on, ...ends } satisfies TraceEntry)]
    }),
    removed: [],
  }
}

/** A secret is shared with the name and password that it belongs to alone. */
function signedBy(state: State, { admin, command }: Change): Edits {
  const shared = adminOf(state)
  const isOther = shared !== undefined && (shared.user !== admin?.user || shared.password !== admin.password)
  if (admin === undefined || (isOther && command.type === 'admin.secret')) return noEdits
  const text = textOfAdmin(admin)
  return state.get('admin') === text ? noEdits : { set: [['admin', text]], removed: [] }
}
