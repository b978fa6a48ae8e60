/**
 * The contract of control: every change of the running server is a command, which is answered when it has taken effect
 * in every process.
 */
import type { CodeToUse } from '../access/used-codes.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'

/** A problem of a reload. `index` counts the records of the file from 0; null for the file as a whole. */
export interface ReloadProblem {
  readonly file: string
  readonly index: number | null
  readonly name: string
  readonly error: string
  /** The place in the file, both from 1, where there is one. */
  readonly line?: number
  readonly column?: number
}

/** The result of a reload. */
export interface ReloadResult {
  /** Application routes removed, including those added at run time. */
  readonly totalDeleted: number
  readonly totalLoaded: number
  /** The names of new routes, of removed routes, and of routes whose record has changed. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
  /** Missing actions, missing exports, unknown fields. */
  readonly warnings: readonly string[]
}

/** Route files, middleware or modules that cannot be used. On a failed reload the old table stays unchanged. */
export class ReloadError extends Error {
  override readonly name = 'ReloadError'
  readonly problems: readonly ReloadProblem[]

  /**
   * @param what what failed: `Cannot load the routes`
   * @param problems at least one
   */
  constructor(what: string, problems: readonly ReloadProblem[], options?: ErrorOptions) {
    super(`${what}: ${describeAll(problems).join('; ')}`, options)
    this.problems = problems
  }
}

/** The most routes that one line names if they have the same problem. */
const mostNames = 5

/** Describes a problem in one line: file, position, route name, reason. */
export function describe(problem: ReloadProblem): string {
  const { file, index, line, column } = problem
  const place = line === undefined ? (index === null ? file : `${file}[${index}]`) : `${file}:${line}:${column}`
  return `${place}: ${problem.name === '' ? '' : `route "${problem.name}": `}${problem.error}`
}

/**
 * Describes several problems in lines; routes of one file with the same problem share a line.
 * @param most the most routes that one line names
 */
export function describeAll(problems: readonly ReloadProblem[], most = mostNames): string[] {
  const byMessage = new Map<string, ReloadProblem[]>()
  for (const problem of problems) {
    const key = problem.name === '' ? describe(problem) : `${problem.file}\n${problem.error}`
    byMessage.set(key, [...(byMessage.get(key) ?? []), problem])
  }
  return [...byMessage.values()].map((alike) => {
    const [first] = alike as [ReloadProblem]
    if (alike.length === 1) return describe(first)
    const named = alike.slice(0, most)
    const places = named.flatMap(({ line, column }) => (line === undefined ? [] : `${line}:${column}`))
    const names = named.map(({ name }) => JSON.stringify(name)).join(', ')
    const others = alike.length > most ? ` and ${alike.length - most} others` : ''
    const place = places.length === 0 ? first.file : `${first.file}:${[...new Set(places)].join(', ')}`
    return `${place}: routes ${names}${others}: ${first.error}`
  })
}

/** Each command by its type, with its arguments and its answer. */
export interface CommandTable {
  /**
   * Reads the route files and changed modules again, and replaces the routes; with `keepsAdded`, routes added or
   * deleted at run time stay that way. Rejects with ReloadError.
   */
  'routes.reload': { takes: { readonly keepsAdded?: boolean }; answers: ReloadResult }
  /** In `dev`: applies saved files, by their absolute paths. */
  'files.changed': { takes: { readonly files: readonly string[] }; answers: void }
  /** In `dev`: refreshes open pages, or only their style sheets; shows why a reload was refused, a line per problem. */
  'pages.refresh': {
    takes: { readonly change: 'none' | 'styles' | 'page'; readonly problems: readonly string[] }
    answers: void
  }
  /** Opens the log files again, after a rotation by another program. */
  'logs.reopen': { takes: object; answers: void }
  /** Reads the certificate files again; false without any. Rejects when they cannot be used; the old ones stay. */
  'certificates.reload': { takes: object; answers: boolean }
  /** Stops gracefully; answers when the stop has begun. */
  stop: { takes: object; answers: void }
  /**
   * Registers a route, and with `persist` writes it to `admin.json`. Rejects with RouteRefusedError,
   * RoutesUnsavedError.
   */
  'routes.add': { takes: { readonly record: unknown; readonly persist: boolean }; answers: AddResult }
  /**
   * Removes a route, and its record in `admin.json`. An unknown name is not an error. Rejects with
   * RoutesUnsavedError.
   */
  'routes.delete': { takes: { readonly name: string }; answers: { readonly deleted: boolean } }
  /**
   * Sets a trace switch, or all. With `ttlSeconds` it reverts automatically. Rejects with RangeError for an unknown
   * module.
   */
  'trace.set': {
    takes: { readonly module: string; readonly enabled: boolean; readonly ttlSeconds?: number }
    answers: Readonly<Record<string, boolean>>
  }
  /** Deletes the compiled views on disk. */
  'cache.clear': { takes: object; answers: { readonly deleted: number; readonly path: string } }
  /** Begins a new bench window. */
  'bench.start': { takes: object; answers: void }
  /** Clears the counted errors, or only those not seen after a time, in milliseconds since 1970. */
  'errors.clear': { takes: { readonly beforeMs?: number }; answers: void }
  /** Saves the first credentials. `done` is false if they exist already. Rejects when they cannot be saved. */
  'admin.setup': { takes: { readonly user: string; readonly password: string }; answers: { readonly done: boolean } }
  /**
   * Uses a code of the second factor. `accepted` is false if it, or a later one, was used before; `left` counts the
   * recovery codes that were not used.
   */
  'admin.code': { takes: { readonly code: CodeToUse }; answers: { readonly accepted: boolean; readonly left: number } }
  /** Makes and saves a secret if there is none. Rejects when it cannot be saved. */
  'admin.secret': { takes: object; answers: { readonly secret: string; readonly made: boolean } }
}

/** The result of adding a route. */
export interface AddResult {
  readonly name: string
  /** Reasons why the route cannot serve yet, or the route that takes precedence. */
  readonly warnings: readonly string[]
}

/** A route record that cannot be registered. */
export class RouteRefusedError extends Error {
  override readonly name = 'RouteRefusedError'
  /** The record's name; '' if it has none. */
  readonly routeName: string
  /** Whether the name is reserved for system routes. */
  readonly reserved: boolean

  constructor(routeName: string, reserved: boolean, problems: readonly string[]) {
    super(problems.join('; '))
    this.routeName = routeName
    this.reserved = reserved
  }
}

/** `admin.json` could not be read or written. Nothing has changed. */
export class RoutesUnsavedError extends Error {
  override readonly name = 'RoutesUnsavedError'
}

/** A command that took effect here, but not in every other process. */
export class NotEverywhereError extends Error {
  override readonly name = 'NotEverywhereError'

  /** @param missing a line for each process that has not, with the reason */
  constructor(type: CommandType, missing: readonly string[]) {
    super(`${type} has taken effect, but not everywhere: ${missing.join('; ')}`)
  }
}

/** A command's name. */
export type CommandType = keyof CommandTable

/** A command with its arguments. */
export type Command<T extends CommandType = CommandType> = { readonly type: T } & CommandTable[T]['takes']

/** Applies commands. */
export interface Control {
  /**
   * Resolves when the command has taken effect everywhere. Rejects with NotEverywhereError when it has taken effect
   * only here; after any other error it has taken effect nowhere.
   */
  apply<T extends CommandType>(command: Command<T>): Promise<CommandTable[T]['answers']>
}

/** The commands about one machine, which are not stored. */
export type MachineCommandType =
  | 'logs.reopen' | 'certificates.reload' | 'stop' | 'cache.clear' | 'bench.start'
  | 'errors.clear' | 'files.changed' | 'pages.refresh'

/** The handlers of one process for the commands about one machine. */
export type MachineHandlers = {
  readonly [T in MachineCommandType]: (command: Command<T>) => MaybePromise<CommandTable[T]['answers']>
}
