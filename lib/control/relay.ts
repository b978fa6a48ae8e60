/**
 * The contract of what carries commands between the processes that serve the same application.
 *
 * A command that changes what all of them have is carried out by the process that was asked, and then taken up by the
 * others. So what is wrong with it shows before anything has changed, and its error is whole.
 */
import type { Command, CommandType } from './commands.ts'

/** Commands that no process can carry out for itself: they are about all of them. */
export type WholeCommandType = 'stop' | 'logs.reopen'

/** Commands that each process carries out for itself. */
export type SharedCommandType = Exclude<CommandType, WholeCommandType>

/** What the admin panel of one process tells those of the others. */
export interface AdminState {
  readonly user: string
  /** The hash of the password. */
  readonly password: string
  readonly secret: string
  /** Whether the `app_key` in use is in the configuration file; absent: it is another machine's, which says nothing of this one. */
  readonly keySaved?: boolean
}

/** A command that has taken effect in one process, for the others. */
export interface Change<T extends SharedCommandType = SharedCommandType> {
  readonly command: Command<T>
  /** The admin's credentials afterwards, with the commands that make them. */
  readonly admin?: AdminState
  /** The names of the routes that came with a reload. */
  readonly added?: readonly string[]
  /** With a route that was added: another machine keeps it, so that it outlasts a reload though no file here has it. */
  readonly lasts?: true
  /** With a route that was deleted on another machine: it is to go from the files of this one as well. */
  readonly inFiles?: true
}

/** What takes up a change in another process. What fails rejects or throws. */
export type CommandFollowers = {
  readonly [T in SharedCommandType]: (change: Change<T>) => unknown
}

/** The other processes, seen from one. */
export interface Relay {
  /**
   * Waits until no other process changes what all have in common. Rejects when the others cannot be reached.
   * @returns lets the next one begin; to be called once
   */
  turn(): Promise<() => void>
  /**
   * Lets the others take up a change. A trace switch that is to go back by itself is set back by the relay, everywhere.
   * Resolves when each of them has answered, with a line for each that has not taken it up: with none when all is well.
   */
  share(change: Change): Promise<readonly string[]>
  /** Hands a command on to who can carry it out. Resolves when it has begun. */
  ask(command: Command<WholeCommandType>): Promise<void>
}
