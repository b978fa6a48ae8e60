/**
 * Reads a database file without changing it, whether a server uses it or not: the check at each start, and what `svc
 * check` and `svc backup` do.
 *
 * SQLite may leave an empty write-ahead log and its index (`-wal`, `-shm`) beside a file that no server uses; the next
 * start removes them.
 */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, statSync } from 'node:fs'
import { reasonOf } from '../base/reason.ts'
import { databasePath, newerVersionProblem, versionOf } from './schema.ts'
import { DataError, isDamage, loadSqlite, toDataError, type Connection, type Sqlite } from './sqlite.ts'

/** What is in a file. */
export interface Findings {
  /** The number of migrations that ran; undefined if it cannot be read. */
  readonly version: number | undefined
  /** What is damaged. Undefined for a sound file, and for one of a newer version, which may only look damaged here. */
  readonly damage: string | undefined
  /** A complete message if a newer version wrote the file. */
  readonly newer: string | undefined
}

/** What is in a database file. */
export interface DatabaseContent {
  readonly path: string
  /** The number of migrations that ran; undefined if it cannot be read. */
  readonly version: number | undefined
  /** Why a server cannot serve the content, as a complete message; undefined if it can. */
  readonly problem: string | undefined
  /** The number of jobs by their state; empty if there is a problem. */
  readonly jobsByState: ReadonlyMap<number, number>
}

/** How long to wait while a server opens, closes or recovers the file. */
const busyTimeoutMs = 5000

/**
 * Examines an existing file; reads all of it. Damage within a value, which breaks no structure, is not found: SQLite
 * has no checksums of data. Nor is damage of the write-ahead log, which ends at its first wrong checksum.
 * @throws an error of SQLite if the file cannot be read
 */
export function examine(sqlite: Sqlite, path: string): Findings {
  let version: number | undefined
  // SQLite takes an empty file for a new database, and deletes the log.
  if (sizeOf(path) === 0 && sizeOf(`${path}-wal`) > 0) {
    return { version, damage: 'it is empty, but its write-ahead log is not', newer: undefined }
  }
  try {
    return withReader(sqlite, path, (reader) => {
      version = versionOf(reader)
      const newer = newerVersionProblem(path, version)
      return { version, newer, damage: newer === undefined ? damageIn(reader, version) : undefined }
    })
  } catch (error) {
    if (!isDamage(error)) throw error
    return { version, damage: reasonOf(error), newer: undefined }
  }
}

/**
 * Inspects the database of a server, running or not. Reads the whole file.
 * @param folder `paths.data`, absolute
 * @returns undefined if there is no file
 * @throws DataError if this Node has no SQLite
 */
export function inspectDatabase(folder: string): DatabaseContent | undefined {
  const path = databasePath(folder)
  if (!existsSync(path)) return undefined
  const sqlite = loadSqlite()
  try {
    const { version, damage, newer } = examine(sqlite, path)
    const problem = newer ?? (damage && `${path} is damaged (${damage}): the next start of the server sets it aside`)
    // A file that a start has only just created has no tables.
    const hasJobs = problem === undefined && version !== 0
    return { path, version, problem, jobsByState: hasJobs ? withReader(sqlite, path, countJobs) : new Map() }
  } catch (error) {
    const { message } = toDataError(`Cannot read ${path}`, error)
    return { path, version: undefined, problem: message, jobsByState: new Map() }
  }
}

/**
 * Copies the database of a server, running or not, as it is at this moment. The copy has mode 0600 and is on disk when
 * this returns.
 * @param folder `paths.data`, absolute
 * @param target the path of the new file
 * @returns the path of the database
 * @throws DataError if there is no database, this Node has no SQLite, the database cannot be read, or the target exists
 * or cannot be written; what was written of the target is removed
 */
export function backUp(folder: string, target: string): string {
  const path = databasePath(folder)
  const what = `Cannot back up ${path} to ${target}`
  const rule = 'the first job, session of the store "data" or durable event makes it'
  if (!existsSync(path)) throw new DataError(`${what}: there is no such database: ${rule}; or check paths.data`)
  const sqlite = loadSqlite()
  const created = createTarget(target, what)
  try {
    // SQLite writes into an empty file, which keeps its mode.
    withReader(sqlite, path, (reader) => reader.prepare('VACUUM INTO ?').run(target))
    fsyncSync(created)
    return path
  } catch (error) {
    rmSync(target, { force: true })
    throw toDataError(what, error)
  } finally {
    closeSync(created)
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function damageIn(reader: Connection, version: number): string | undefined {
  if (version < 0) return `its version is ${version}`
  const result = reader.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  return result === 'ok' ? undefined : String(result).replace(/^\*\*\*.*\n/, '') // Without a heading.
}

/** Runs work with a read-only connection. Returns what the work returns. */
function withReader<T>({ DatabaseSync }: Sqlite, path: string, work: (reader: Connection) => T): T {
  const reader = new DatabaseSync(path, { readOnly: true })
  try {
    reader.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    return work(reader)
  } finally {
    reader.close()
  }
}

function createTarget(target: string, what: string): number {
  try {
    return openSync(target, 'wx', 0o600)
  } catch (error) {
    throw new DataError(`${what}: ${reasonOf(error)}: name a new file in a folder that exists`, { cause: error })
  }
}

function countJobs(reader: Connection): ReadonlyMap<number, number> {
  const rows = reader.prepare('SELECT state, count(*) AS count FROM jobs GROUP BY state ORDER BY state').all()
  return new Map(rows.map(({ state, count }) => [Number(state), Number(count)]))
}
