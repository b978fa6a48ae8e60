/**
 * How a node comes from the state that it is in to another one: by the changes that a worker or a single process takes up.
 * So a change of another node, all that was missed while the engine was away, and the way back from what could not be
 * recorded are one and the same.
 *
 * Surprise: a route that comes back at an earlier place takes those behind it along: of two that answer the same requests
 * the first one does, on every node.
 */
import type { Command } from '../control/commands.ts'
import type { Change } from '../control/relay.ts'
import {
  adminOf,
  edited,
  fieldOfTrace,
  routesOf,
  traceOf,
  tracedModules,
  valueOf,
  type Edits,
  type State,
} from './state.ts'

/** One step of the way, and what it makes of the state that the node is in. */
export interface Step {
  readonly change: Change
  readonly edits: Edits
}

type NamedRoute = ReturnType<typeof routesOf>[number]

export interface DifferencesOptions {
  /** The engine's time in milliseconds. */
  readonly nowMs: number
  /** What the node's configuration says of the trace switches. */
  readonly trace: Readonly<Record<string, boolean>>
}

/**
 * The steps from one state to another, in order. What needs no step (a time that moved) is in the target alone.
 * @throws DamagedStateError
 */
export function differencesOf(from: State, to: State, options: DifferencesOptions): readonly Step[] {
  const steps: Step[] = []
  let current = from
  for (const find of [reloadOf, deletionsOf, additionsOf]) {
    for (const step of find(current, to)) {
      steps.push(step)
      current = edited(current, step.edits)
    }
  }
  return [...steps, ...switchesOf(from, to, options), ...credentialsOf(from, to)]
}

/** Files bring back what was deleted. */
function reloadOf(from: State, to: State): Step[] {
  const isBack = ({ field, entry }: NamedRoute): boolean => entry.record === undefined && !to.has(field)
  const last = to.get('reload')
  if (from.get('reload') === last && !routesOf(from).some(isBack)) return []
  const ended = routesOf(from).filter(({ field, entry }) => entry.lasts !== true || isBack({ field, name: '', entry }))
  const marked: Edits = last === undefined ? { set: [], removed: ['reload'] } : { set: [['reload', last]], removed: [] }
  const edits = { ...marked, removed: [...marked.removed, ...ended.map(({ field }) => field)] }
  return [{ change: { command: { type: 'routes.reload' } }, edits }]
}

function deletionsOf(from: State, to: State): Step[] {
  const kept = keptOf(from, to)
  const present = routesOf(from).filter(({ entry, field }) => entry.record !== undefined && !kept.has(field))
  const gone = routesOf(to).filter(({ entry, field }) => entry.record === undefined && from.get(field) !== to.get(field))
  const names = new Map([...present, ...gone].map(({ name, field }) => [name, field]))
  return [...names].map(([name, field]) => {
    const text = to.get(field)
    const isGone = gone.some((other) => other.field === field)
    const edits: Edits = isGone && text !== undefined ? { set: [[field, text]], removed: [] } : { set: [], removed: [field] }
    return { change: { command: { type: 'routes.delete', name }, inFiles: true }, edits }
  })
}

function additionsOf(from: State, to: State): Step[] {
  return routesOf(to)
    .filter(({ field, entry }) => entry.record !== undefined && from.get(field) !== to.get(field))
    .map(({ field, entry: { record, lasts } }) => ({
      change: { command: { type: 'routes.add', record, persist: false }, ...(lasts === true && { lasts }) },
      edits: { set: [[field, to.get(field) ?? '']], removed: [] },
    }))
}

/** The fields of routes that stay where they are. */
function keptOf(from: State, to: State): ReadonlySet<string> {
  const isThere = ({ entry }: NamedRoute): boolean => entry.record !== undefined
  const isSame = ({ field }: NamedRoute): boolean => from.get(field) === to.get(field)
  const added = routesOf(to).filter((route) => isThere(route) && !isSame(route))
  const firstAdded = added[0]?.entry.seq ?? Number.POSITIVE_INFINITY
  const kept = routesOf(from).filter((route) => isThere(route) && isSame(route) && route.entry.seq < firstAdded)
  return new Set(kept.map(({ field }) => field))
}

function switchesOf(from: State, to: State, { nowMs, trace }: DifferencesOptions): Step[] {
  const modules = new Set([...tracedModules(from), ...tracedModules(to)])
  const found = [...modules].flatMap((module): Step[] => {
    const [before, after] = [from, to].map((state) => {
      const entry = traceOf(state, module)
      return (entry === undefined ? undefined : valueOf(entry, nowMs)) ?? trace[module] ?? true
    })
    const field = fieldOfTrace(module)
    const text = to.get(field)
    if (before === after || after === undefined) return []
    const edits: Edits = text === undefined ? { set: [], removed: [field] } : { set: [[field, text]], removed: [] }
    return [{ change: { command: { type: 'trace.set', module, enabled: after } }, edits }]
  })
  // Each is told of in the log of module server: that one is on first and off last.
  const rank = ({ change }: Step): number => Number(isSwitchOfServer(change, false)) - Number(isSwitchOfServer(change, true))
  return found.toSorted((a, b) => rank(a) - rank(b))
}

/** Whether a change switches the log of module `server` on or off. */
export function isSwitchOfServer({ command }: Change, enabled: boolean): boolean {
  if (command.type !== 'trace.set') return false
  const { module, enabled: isOn } = command as Command<'trace.set'>
  return module === 'server' && isOn === enabled
}

function credentialsOf(from: State, to: State): Step[] {
  const admin = adminOf(to)
  const text = to.get('admin')
  if (admin === undefined || text === undefined || from.get('admin') === text) return []
  return [{ change: { command: { type: 'admin.secret' }, admin }, edits: { set: [['admin', text]], removed: [] } }]
}
