/**
 * What all nodes have in common, as it lies in the shared engine: a hash of fields, each a text.
 *
 * | field | text |
 * | --- | --- |
 * | `reload` | the number of the change that was the last reload |
 * | `route:NAME`, the name as JSON | a {@link RouteEntry} |
 * | `trace:MODULE` | a {@link TraceEntry} |
 * | `admin` | {@link SharedAdmin} |
 *
 * Surprise: a route that was deleted leaves an entry without a record where a file may have it: a node that starts later
 * finds it in its files, and must not serve it.
 */
import { isObject } from '../base/object.ts'

/** All fields. */
export type State = ReadonlyMap<string, string>

/** What becomes of fields. */
export interface Edits {
  readonly set: readonly (readonly [field: string, text: string])[]
  readonly removed: readonly string[]
}

/** A route that was added or deleted since the last reload, or that is to last. */
export interface RouteEntry {
  /** The number of the change: routes are registered in this order. */
  readonly seq: number
  /** As a client sent it; absent: the route was deleted. */
  readonly record?: unknown
  /** It stands in `admin.json` of the node that was asked, and outlasts a reload. */
  readonly lasts?: true
  /** A route of that name was deleted before: a file may have it. */
  readonly hides?: true
}

/** A trace switch. */
export interface TraceEntry {
  readonly on: boolean
  /** When it goes back, in milliseconds by the engine's clock; absent: never. */
  readonly until?: number
  /** What it goes back to; absent: as each node's configuration has it. */
  readonly back?: boolean
}

/** The admin's credentials. */
export interface SharedAdmin {
  readonly user: string
  /** The hash of the password. */
  readonly password: string
  readonly secret: string
}

/** A field holds what no server of this version wrote. */
export class DamagedStateError extends Error {
  override readonly name = 'DamagedStateError'
}

const routePrefix = 'route:'
const tracePrefix = 'trace:'

/** Fields with edits applied, as a new map. */
export function edited(state: State, { set, removed }: Edits): State {
  const fields = new Map(state)
  for (const field of removed) fields.delete(field)
  for (const [field, text] of set) fields.set(field, text)
  return fields
}

/** Whether edits change nothing. */
export function isEmpty({ set, removed }: Edits): boolean {
  return set.length === 0 && removed.length === 0
}

/** What a switch is at a time; undefined: as the node's configuration has it. */
export function valueOf({ on, until, back }: TraceEntry, nowMs: number): boolean | undefined {
  return until !== undefined && until <= nowMs ? back : on
}

/** The field of a route. A name may hold anything, and JSON holds it without loss. */
export function fieldOfRoute(name: string): string {
  return routePrefix + JSON.stringify(name)
}

/** The field of a trace switch. */
export function fieldOfTrace(module: string): string {
  return tracePrefix + module
}

/** The text of the credentials. */
export function textOfAdmin({ user, password, secret }: SharedAdmin): string {
  return JSON.stringify({ user, password, secret })
}

/** The entry of a name. Throws DamagedStateError. */
export function routeOf(state: State, name: string): RouteEntry | undefined {
  return read(state, fieldOfRoute(name), isRouteEntry)
}

/** All entries of routes, in the order of their changes. Throws DamagedStateError. */
export function routesOf(state: State): { readonly field: string; readonly name: string; readonly entry: RouteEntry }[] {
  return [...state.keys()]
    .filter((field) => field.startsWith(routePrefix))
    .map((field) => ({ field, name: nameIn(field), entry: read(state, field, isRouteEntry) as RouteEntry })) // It is there.
    .sort((a, b) => a.entry.seq - b.entry.seq)
}

/** The entry of a module. Throws DamagedStateError. */
export function traceOf(state: State, module: string): TraceEntry | undefined {
  return read(state, fieldOfTrace(module), isTraceEntry)
}

/** The modules that have an entry. */
export function tracedModules(state: State): string[] {
  return [...state.keys()].filter((field) => field.startsWith(tracePrefix)).map((field) => field.slice(tracePrefix.length))
}

/** The credentials. Throws DamagedStateError. */
export function adminOf(state: State): SharedAdmin | undefined {
  return read(state, 'admin', isAdmin)
}

function nameIn(field: string): string {
  const name = parse(field.slice(routePrefix.length))
  if (typeof name === 'string') return name
  throw damaged(field)
}

function read<Value>(state: State, field: string, is: (value: unknown) => value is Value): Value | undefined {
  const text = state.get(field)
  if (text === undefined) return undefined
  const value = parse(text)
  if (is(value)) return value
  throw damaged(field)
}

function damaged(field: string): DamagedStateError {
  return new DamagedStateError(`the field ${field} of the shared state is damaged: remove it with HDEL`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isRouteEntry(value: unknown): value is RouteEntry {
  return isObject(value) && Number.isSafeInteger(value['seq']) && (value['record'] === undefined || isObject(value['record']))
}

function isTraceEntry(value: unknown): value is TraceEntry {
  if (!isObject(value) || typeof value['on'] !== 'boolean') return false
  const { until, back } = value
  return (until === undefined || Number.isFinite(until)) && (back === undefined || typeof back === 'boolean')
}

function isAdmin(value: unknown): value is SharedAdmin {
  return isObject(value) && ['user', 'password', 'secret'].every((name) => typeof value[name] === 'string')
}
