/**
 * SQLite as Node includes it, and what its errors mean.
 *
 * `node:sqlite` is loaded when the first database is opened: not every supported Node has it, and a server without
 * `paths.data` does not need it. The types of Node 20 lack it, so the used part is declared here.
 */
import { reasonOf } from '../base/reason.ts'

/** A value of a column or a parameter. */
export type SqlValue = null | number | bigint | string | Uint8Array

/** A row: the values by the names of the columns. */
export type Row = Record<string, SqlValue>

/** `StatementSync`: a prepared statement. */
export interface Statement {
  /** Runs the statement. Returns the number of changed rows and the last id that was given. */
  run(...values: readonly SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number }
  /** Returns the first row; undefined if there is none. */
  get(...values: readonly SqlValue[]): Row | undefined
  all(...values: readonly SqlValue[]): Row[]
}

/** `DatabaseSync`: a connection to a file. */
export interface Connection {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

/** `node:sqlite`. */
export interface Sqlite {
  readonly DatabaseSync: new (file: string, options?: { readonly readOnly?: boolean }) => Connection
}

/** Thrown when this Node has no SQLite, or a database file cannot be used. The message is complete. */
export class DataError extends Error {
  override readonly name = 'DataError'
}

/** Primary result codes of SQLite (https://www.sqlite.org/rescode.html). */
export const resultCode = { busy: 5, readOnly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 }

const damaged = 'it is damaged: restart the server, which sets it aside'
const noAccess = 'let the user of the server read and write it and its folder'
const reasons: ReadonlyMap<number, string> = new Map([
  [resultCode.busy, 'another program has locked it: end that program'],
  [resultCode.readOnly, `it is read-only: ${noAccess}`],
  [resultCode.ioError, 'the disk reports an error: check the disk and the log of the system'],
  [resultCode.corrupt, damaged],
  [resultCode.full, 'the disk is full: free some space'],
  [resultCode.cannotOpen, `it cannot be opened: ${noAccess}`],
  [resultCode.notADatabase, damaged],
])

/**
 * Loads `node:sqlite`.
 * @throws DataError on a Node without it
 */
export function loadSqlite(): Sqlite {
  const sqlite = loadQuietly()
  if (sqlite !== undefined) return sqlite
  const version = process.versions.node
  throw new DataError(`paths.data needs node:sqlite, which Node ${version} does not have: run Node 22.13 or later`)
}

/** Returns the primary result code of an error of SQLite; undefined for any other thrown value. */
export function resultCodeOf(thrown: unknown): number | undefined {
  const isCoded = thrown instanceof Error && 'errcode' in thrown && typeof thrown.errcode === 'number'
  return isCoded ? Number(thrown.errcode) & 0xff : undefined // The other bits are the extended code.
}

/** Whether an error of SQLite means that the content of the file is damaged. */
export function isDamage(thrown: unknown): boolean {
  const code = resultCodeOf(thrown)
  return code === resultCode.corrupt || code === resultCode.notADatabase
}

/** Whether an error of SQLite is about the file, not about the statement: other statements fail too. */
export function isOfFile(thrown: unknown): boolean {
  return reasons.has(resultCodeOf(thrown) ?? 0)
}

/**
 * Returns a thrown value as a DataError; one that it is already is unchanged.
 * @param what the operation and the file, such as `Cannot write /srv/data/svc.db`
 */
export function toDataError(what: string, thrown: unknown): DataError {
  if (thrown instanceof DataError) return thrown
  const reason = reasons.get(resultCodeOf(thrown) ?? 0) ?? reasonOf(thrown)
  return new DataError(`${what}: ${reason}`, { cause: thrown })
}

/**
 * Node 22 and the first releases of 24 warn that SQLite is experimental, when it is loaded. The server tests it on each
 * of them, and users can do nothing about it. The load is synchronous, so no warning of other code is in between; any
 * other warning of the load passes.
 */
function loadQuietly(): Sqlite | undefined {
  const { emitWarning } = process
  const emitOthers = (...args: readonly unknown[]): void => {
    if (args[1] !== 'ExperimentalWarning') Reflect.apply(emitWarning, process, args)
  }
  process.emitWarning = emitOthers
  try {
    return process.getBuiltinModule('node:sqlite') as Sqlite | undefined // The interface is a part of the module.
  } catch {
    return undefined
  } finally {
    process.emitWarning = emitWarning
  }
}
