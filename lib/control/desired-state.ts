/**
 * The desired state: all persistent changes of the admin panel, as one value with a version. Each process keeps the
 * state that it has applied, and has one function that applies another one (`reconciler.ts`). So a process that is new,
 * was cut off or missed a change needs no history: it reads the state.
 *
 * The functions here return the content of the next state and do not modify their arguments.
 */
import { randomUUID } from 'node:crypto'
import type { AdminCredentials } from '../access/credentials.ts'
import type { UsedCodes } from '../access/used-codes.ts'
import { traceModules } from '../log/trace.ts'

/** A route that was added or deleted since the last reload, or that survives reloads. */
export interface RouteEntry {
  readonly name: string
  /** The version that made the entry. */
  readonly at: number
  /** As sent by a client; absent if the route was deleted, though a route file may still have it. */
  readonly record?: unknown
  /** Whether `admin.json` of one machine has it. If so, it survives reloads on every machine. */
  readonly lasts?: true
  /** Whether a route of this name was deleted earlier, though a route file may still have it. */
  readonly hides?: true
}

/** A trace switch that was set. */
export interface TraceEntry {
  readonly on: boolean
  /** When it reverts, in milliseconds since 1970 by the clock of the state; absent for never. */
  readonly until?: number
  /** The setting that it reverts to; absent for the configuration of each machine. */
  readonly back?: boolean
}

/** The content of a state. */
export interface StateContent {
  /** The version of the last reload; 0 before the first. */
  readonly reload: number
  /** In the order of the changes; each name occurs once. */
  readonly routes: readonly RouteEntry[]
  /** By module. */
  readonly trace: Readonly<Record<string, TraceEntry>>
  /** The admin's credentials, if set or shared; otherwise each machine uses those of its configuration. */
  readonly credentials?: AdminCredentials
  /** The codes of the second factor that were used; absent before the first. */
  readonly usedCodes?: UsedCodes
}

/** A state. */
export interface DesiredState extends StateContent {
  /** 0 before the first change; each change adds 1. */
  readonly version: number
  /** A random string: two states of the same version may differ after an engine lost data. */
  readonly stamp: string
  /** The stamps of its ancestors, newest first, without the initial state; at most 64. */
  readonly ancestors: readonly string[]
}

/** The most ancestors that a state names. */
const ancestorsKept = 64

/** The state before the first change. */
export const initialState: DesiredState = { version: 0, stamp: '', ancestors: [], reload: 0, routes: [], trace: {} }

/** Returns the next state, with some content changed. */
export function nextState(state: DesiredState, change: Partial<StateContent>): DesiredState {
  const ancestors = state.version === 0 ? [] : [state.stamp, ...state.ancestors].slice(0, ancestorsKept)
  return { ...state, ...change, version: state.version + 1, stamp: randomUUID(), ancestors }
}

/** Whether a state equals or descends from an earlier one; one too old to be named counts as an ancestor. */
export function descends(state: DesiredState, earlier: DesiredState): boolean {
  const isNamed = state.stamp === earlier.stamp || state.ancestors.includes(earlier.stamp)
  return isNamed || earlier.version === 0 || state.version - earlier.version > ancestorsKept
}

/**
 * Returns the content with a route added.
 * @param lasts whether one machine persists it in a file that the others do not have
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

/** Returns the content with a route deleted. An entry stays, unless no file can have a route of this name. */
export function withoutRoute(state: DesiredState, name: string): Partial<StateContent> {
  const entry = state.routes.find((other) => other.name === name)
  const others = withoutName(state.routes, name)
  const isOnlyHere = entry?.record !== undefined && entry.lasts !== true && entry.hides !== true
  if (isOnlyHere) return { routes: others }
  return { routes: [...others, { name, at: state.version + 1, ...(entry?.lasts === true && { lasts: true }) }] }
}

/**
 * Returns the content after a reload, which restores the route files. A route that another machine persists stays. The
 * deletion of such a route stays too, since the file of an absent machine may still have it, unless a file here has a
 * new route of this name.
 * @param inFiles the names of the routes in the route files
 */
export function withReload(state: DesiredState, inFiles: ReadonlySet<string>): Partial<StateContent> {
  const stays = ({ name, record, lasts }: RouteEntry): boolean =>
    lasts === true && (record !== undefined || !inFiles.has(name))
  return { reload: state.version + 1, routes: state.routes.filter(stays) }
}

/**
 * Returns the content after only the route files were read again: routes that were added or deleted stay that way. An
 * entry is removed when the files have the same effect without it.
 * @param inFiles the names of the routes in the route files
 * @param persisted the names among them that are in `admin.json`
 */
export function withFilesRead(
  state: DesiredState,
  inFiles: ReadonlySet<string>,
  persisted: ReadonlySet<string>,
): Partial<StateContent> {
  const stays = ({ name, record, lasts }: RouteEntry): boolean =>
    lasts === true || (record === undefined ? inFiles.has(name) : !persisted.has(name))
  return { reload: state.version + 1, routes: state.routes.filter(stays) }
}

/** A setting of a trace switch. */
interface SwitchSetting {
  /** The module, or `all`. */
  readonly module: string
  readonly on: boolean
  /** How long, from 1; undefined for permanently. */
  readonly ttlSeconds?: number | undefined
}

/**
 * Returns the content with one or all trace switches set. A second setting with a duration reverts to the setting
 * before the first.
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

/** Returns the setting of a switch at a time; undefined for the setting of the machine's configuration. */
export function switchAt({ on, until, back }: TraceEntry, nowMs: number): boolean | undefined {
  return until !== undefined && until <= nowMs ? back : on
}

function withoutName(routes: readonly RouteEntry[], name: string): readonly RouteEntry[] {
  return routes.filter((entry) => entry.name !== name)
}

/** A difference between two states, as logged. */
export interface Difference {
  /** The command that causes it. */
  readonly type: 'routes.reload' | 'routes.delete' | 'routes.add' | 'trace.set' | 'admin.secret' | 'admin.code'
  /** The route, switch or record; '' if the type is sufficient. */
  readonly about: string
}

/** Returns the differences from one state to another, for the log. */
export function differences(from: DesiredState, to: DesiredState): readonly Difference[] {
  const isReload = from.reload !== to.reload
  const known = new Set(from.routes.map((entry) => JSON.stringify(entry)))
  const names = new Set(to.routes.map(({ name }) => name))
  const isRemoved = ({ name, record }: RouteEntry): boolean => !isReload && record !== undefined && !names.has(name)
  const fresh = to.routes.filter((entry) => !known.has(JSON.stringify(entry)))
  const deleted = [...from.routes.filter(isRemoved), ...fresh.filter(({ record }) => record === undefined)]
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
    ...(isSame(from.usedCodes, to.usedCodes) ? [] : [{ type: 'admin.code', about: '' } as const]),
  ]
}

/** Whether two values of a state have the same content. */
function isSame(a: object | undefined, b: object | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
