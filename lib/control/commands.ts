/**
 * The contract of control: whatever changes the running server is a command, and the answer comes when the command has
 * taken effect. In one process that is a function call; with several it reaches each of them.
 */

/** What was wrong with a reload. `index` counts the records of the file from 0; null: the file as a whole. */
export interface ReloadProblem {
  readonly file: string
  readonly index: number | null
  readonly name: string
  readonly error: string
}

/** What a reload did. */
export interface ReloadResult {
  /** Application routes removed, those made at run time too. */
  readonly totalDeleted: number
  readonly totalLoaded: number
  /** Actions that are not there yet, exports that are missing, fields that nobody knows. */
  readonly warnings: readonly string[]
}

/** Route files, middleware or modules that cannot be used. At a reload the old table stays whole. */
export class ReloadError extends Error {
  override readonly name = 'ReloadError'
  readonly problems: readonly ReloadProblem[]

  /**
   * @param what what was tried
   * @param problems at least one
   */
  constructor(what: string, problems: readonly ReloadProblem[], options?: ErrorOptions) {
    super(`${what}: ${problems.map(describe).join('; ')}`, options)
    this.problems = problems
  }
}

/** A problem in one line: file, place, route name, what is wrong. */
export function describe(problem: ReloadProblem): string {
  const place = problem.index === null ? problem.file : `${problem.file}[${problem.index}]`
  return `${place}: ${problem.name === '' ? '' : `route "${problem.name}": `}${problem.error}`
}

/** Each command by its type, with what it takes besides and what it answers. */
export interface CommandTable {
  /** Reads route files anew, with the modules that changed, and swaps the table. Rejects with ReloadError. */
  'routes.reload': { takes: object; answers: ReloadResult }
  /** Opens the log files anew, as after a rotation from outside. */
  'logs.reopen': { takes: object; answers: void }
  /** Reads the certificate files anew. Rejects when they cannot be used; the old ones stay. */
  'certificates.reload': { takes: object; answers: void }
  /** Stops gracefully; answers when the stop has begun. */
  stop: { takes: object; answers: void }
}

/** A command's name. */
export type CommandType = keyof CommandTable

/** A command with what it takes. */
export type Command<T extends CommandType = CommandType> = { readonly type: T } & CommandTable[T]['takes']

/** Applies commands. */
export interface Control {
  /** Resolves when the command has taken effect everywhere; rejects when it has not taken effect anywhere. */
  apply<T extends CommandType>(command: Command<T>): Promise<CommandTable[T]['answers']>
}

/** What carries out each command in one process. */
export type CommandHandlers = {
  readonly [T in CommandType]: (command: Command<T>) => CommandTable[T]['answers'] | Promise<CommandTable[T]['answers']>
}
