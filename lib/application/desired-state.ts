/**
 * The desired state: everything that the admin panel changes for good, as one value with a version. Each process keeps
 * the state that it has applied, and has one function that brings it to another one (`reconciler.ts`). So a process
 * that is new, was cut off or missed a change needs no history: it reads the state.
 *
 * The functions here make the next content of a state. None of them changes what it is given.
 */
import { randomUUID } from 'node:crypto'
import type { AdminCredentials } from '../admin/credentials.ts'
import { traceModules } from '../log/trace.ts'

/** A route that was added or deleted since the last reload, or that outlasts reloads. */
export interface RouteEntry {
  readonly name: string
  /** The version that made the entry. */
  readonly at: number
  /** As a client sent it; absent: the route was deleted, and a route file may still have it. */
  readonly record?: unknown
  /** It stands in `admin.json` of one machine; on the others it outlasts reloads all the same. */
  readonly lasts?: true
  /** A route of this name was deleted before, and a route file may still have it. */
  readonly hides?: true
}

/** A trace switch that was set. */
export interface TraceEntry {
  readonly on: boolean
  /** When it goes back, in milliseconds since 1970 by the clock of the state; absent: never. */
  readonly until?: number
  /** What it goes back to; absent: what each machine's configuration says. */
  readonly back?: boolean
}

/** What a change makes of a state. */
export interface StateContent {
  /** The version of the last reload; 0: there was none. */
  readonly reload: number
  /** In the order in which they were made; a name is there once. */
  readonly routes: readonly RouteEntry[]
  /** By module. */
  readonly trace: Readonly<Record<string, TraceEntry>>
  /** The admin's credentials, where they were made or shared; absent: each machine has those of its configuration. */
  readonly credentials?: AdminCredentials
}

/** A state. */
export interface DesiredState extends StateContent {
  /** 0: nothing was ever changed. Each change adds 1. */
  readonly version: number
  /** A random text of this version alone: two states of one version may differ after an engine lost data. */
  readonly stamp: string
  /** The stamps of the states that it was made from, the newest first, without the initial one; 64 at most. */
  readonly ancestors: readonly string[]
}

/** How many ancestors a state names. */
const ancestorsKept = 64

/** Before the first change. */
export const initialState: DesiredState = { version: 0, stamp: '', ancestors: [], reload: 0, routes: [], trace: {} }

/** The state that follows another one, with some of its content changed. */
export function nextState(state: DesiredState, change: Partial<StateContent>): DesiredState {
  const ancestors = state.version === 0 ? [] : [state.stamp, ...state.ancestors].slice(0, ancestorsKept)
  return { ...state, ...change, version: state.version + 1, stamp: randomUUID(), ancestors }
}

/** Whether a state is an earlier one or was made from it; one too far back to be named counts as an ancestor. */
export function descends(state: DesiredState, earlier: DesiredState): boolean {
  const isNamed = state.stamp === earlier.stamp || state.ancestors.includes(earlier.stamp)
  return isNamed || earlier.version === 0 || state.version - earlier.version > ancestorsKept
}

/**
 * The content with a route added.
 * @param lasts whether one machine keeps it in a file that others do not have
 */
export function withRoute(state: DesiredState, name: string, record: unknown, lasts: boolean): Partial<StateContent> {
  const isHidden = state.routes.some((entry) => entry.name === name)
  const entry: RouteEntry = {
    name,
    at: state.version + 1,
    record,
    ...(lasts && { lasts }),
    ...(isHidden && { hides: true }),
  }
  return { routes: [...withoutName(state.routes, name), entry] }
}

/** The content with a route deleted. A file may have it, but for a name that was free when the route was added. */
export function withoutRoute(state: DesiredState, name: string): Partial<StateContent> {
  const entry = state.routes.find((other) => other.name === name)
  const others = withoutName(state.routes, name)
  const isOnlyHere = entry?.record !== undefined && entry.lasts !== true && entry.hides !== true
  if (isOnlyHere) return { routes: others }
  return { routes: [...others, { name, at: state.version + 1, ...(entry?.lasts === true && { lasts: true }) }] }
}

/**
 * The content after a reload: the route files count again. A route that another machine keeps stays. That one was
 * deleted stays too, since the file of a machine that is away may still have it, unless a file here has its name anew.
 * @param inFiles the names of the routes in the route files
 */
export function withReload(state: DesiredState, inFiles: ReadonlySet<string>): Partial<StateContent> {
  const stays = ({ name, record, lasts }: RouteEntry): boolean =>
    lasts === true && (record !== undefined || !inFiles.has(name))
  return { reload: state.version + 1, routes: state.routes.filter(stays) }
}

/** A setting of a trace switch. */
export interface SwitchSetting {
  /** The module, or `all`. */
  readonly module: string
  readonly on: boolean
  /** How long, 1 and up; undefined: for good. */
  readonly ttlSeconds?: number | undefined
}

/**
 * The content with a trace switch set, or every one. A second setting with a time goes back to what there was before
 * the first.
 * @param nowMs by the clock of the state
 */
export function withSwitch(
  state: DesiredState,
  { module, on, ttlSeconds }: SwitchSetting,
  nowMs: number,
): Partial<StateContent> {
  const modules = module === 'all' ? traceModules : [module]
  const set = modules.map((each): [string, TraceEntry] => {
    if (ttlSeconds === undefined) return [each, { on }]
    const before = state.trace[each]
    const isTimed = before?.until !== undefined && before.until > nowMs
    const back = isTimed ? before.back : before && switchAt(before, nowMs)
    return [each, { on, until: nowMs + ttlSeconds * 1000, ...(back !== undefined && { back }) }]
  })
  return { trace: { ...state.trace, ...Object.fromEntries(set) } }
}

/** What a switch is at a time; undefined: what the machine's configuration says. */
export function switchAt({ on, until, back }: TraceEntry, nowMs: number): boolean | undefined {
  return until !== undefined && until <= nowMs ? back : on
}

function withoutName(routes: readonly RouteEntry[], name: string): readonly RouteEntry[] {
  return routes.filter((entry) => entry.name !== name)
}

/** One of the differences between two states, in the words of the log. */
export interface Difference {
  /** The command that makes it. */
  readonly type: 'routes.reload' | 'routes.delete' | 'routes.add' | 'trace.set' | 'admin.secret'
  /** What it is about; '' where the type says it all. */
  readonly about: string
}

/** What brings one state to another, for the log. */
export function differences(from: DesiredState, to: DesiredState): readonly Difference[] {
  const isReload = from.reload !== to.reload
  const isNew = (entry: RouteEntry): boolean => from.routes.every((other) => !isSame(entry, other))
  const isGone = ({ name, record }: RouteEntry): boolean =>
    !isReload && record !== undefined && to.routes.every((entry) => entry.name !== name)
  const fresh = to.routes.filter(isNew)
  const deleted = [...from.routes.filter(isGone), ...fresh.filter(({ record }) => record === undefined)]
  const modules = [...new Set([...Object.keys(from.trace), ...Object.keys(to.trace)])]
  return [
    ...(isReload ? [{ type: 'routes.reload', about: '' } as const] : []),
    ...deleted.map(({ name }) => ({ type: 'routes.delete', about: JSON.stringify(name) }) as const),
    ...fresh
      .filter(({ record }) => record !== undefined)
      .map(({ record }) => ({ type: 'routes.add', about: JSON.stringify(record) }) as const),
    ...modules
      .filter((module) => !isSame(from.trace[module], to.trace[module]))
      .map((module) => {
        const on = to.trace[module]?.on ?? true
        return { type: 'trace.set', about: `${module} ${on ? 'on' : 'off'}` } as const
      }),
    ...(isSame(from.credentials, to.credentials) ? [] : [{ type: 'admin.secret', about: '' } as const]),
  ]
}

/** Whether two values of a state have the same content. */
function isSame(a: object | undefined, b: object | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
