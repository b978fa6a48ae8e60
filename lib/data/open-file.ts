/**
 * Opens the database file of a server: lock, check, settings, migrations. A damaged file is set aside.
 *
 * Surprise: nothing in the process may open `svc.db` or its lock by `node:fs` while they are in use. Closing any
 * descriptor of a file frees the POSIX locks that the process has on it, those of SQLite too.
 */
import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs'
import { reasonOf } from '../base/reason.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { examine } from './inspect.ts'
import { databasePath, migrate, versionOf } from './schema.ts'
import {
  DataError,
  isDamage,
  loadSqlite,
  resultCode,
  resultCodeOf,
  toDataError,
  type Connection,
  type Sqlite,
} from './sqlite.ts'

/** Where the database is, and how it is used. */
export interface DatabaseOptions {
  /** `paths.data`, absolute. The file is `svc.db` in it. Created on demand, mode 0700. */
  readonly folder: string
  /** `data.sync`: `normal` may lose the last transactions in a power failure, `full` syncs each to the disk. */
  readonly sync: 'normal' | 'full'
  readonly log: Pick<ModuleLogger, 'info' | 'warn' | 'error'>
}

/** An open database file. */
export interface OpenedFile {
  readonly path: string
  readonly connection: Connection
  /** Holds the lock; closing it frees the lock. */
  readonly lock: Connection
}

/** How long to wait for a lock on the data, which only another program can hold: all of the server waits. */
const busyTimeoutMs = 1000
const maxIdleWalBytes = 4 * 2 ** 20
/** The files of a database: a journal exists only before the first start ends. */
const suffixes = ['', '-wal', '-shm', '-journal']

/**
 * Opens or creates the database file, locked against other servers.
 * @throws DataError if this Node has no SQLite, or the file or its folder cannot be used
 */
export function openFile({ folder, sync, log }: DatabaseOptions): OpenedFile {
  const sqlite = loadSqlite()
  const path = databasePath(folder)
  createFolder(folder)
  const lock = takeLock(sqlite, path)
  try {
    createFile(path)
    rollBackJournal(sqlite, path)
    // A read-only look leaves the log as it is: one left by another file looks like damage, but must not be applied.
    const { newer, damage } = examine(sqlite, path)
    if (newer !== undefined) throw new DataError(newer)
    if (damage !== undefined) {
      setAside(path, damage, log)
      createFile(path)
    }
    return { path, connection: connect(sqlite, path, sync), lock }
  } catch (error) {
    lock.close()
    throw toDataError(`Cannot open ${path}`, error)
  }
}

function createFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw cannotCreate(folder, error)
  }
}

/** Creates an empty file that only its owner can read. SQLite gives its other files the same mode. */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600)) // `wx` never opens an existing file: see the head of this file.
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw cannotCreate(path, error) // `node:fs` throws these.
    if (!statSync(path).isFile()) throw new DataError(`${path} is not a file: remove it, or name another paths.data`)
  }
}

function cannotCreate(path: string, error: unknown): DataError {
  const remedy = 'name a folder in paths.data that the user of the server can write'
  return new DataError(`Cannot create ${path}: ${reasonOf(error)}: ${remedy}`, { cause: error })
}

/**
 * Locks a file beside the database, so that others can still read the database. SQLite locks, not a file that exists or
 * not: the system frees the lock with the process, however that ends. The lock file stays empty, and is never removed:
 * a second server could otherwise lock a new one.
 */
function takeLock(sqlite: Sqlite, path: string): Connection {
  const file = `${path}-lock`
  let lock: Connection | undefined
  try {
    createFile(file)
    lock = new sqlite.DatabaseSync(file)
    // A journal in memory leaves no file behind.
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock?.close()
    if (resultCodeOf(error) === resultCode.busy) {
      throw new DataError(`${path} is in use by another server: stop that server, or name another paths.data`)
    }
    if (isDamage(error)) throw new DataError(`${file} is not empty, as a lock is: remove it`, { cause: error })
    throw toDataError(`Cannot lock ${file}`, error)
  }
}

/** A first start that was killed may leave a journal, which only a writer can roll back. Any read does it. */
function rollBackJournal(sqlite: Sqlite, path: string): void {
  if (!existsSync(`${path}-journal`)) return
  const connection = new sqlite.DatabaseSync(path)
  try {
    versionOf(connection)
  } catch (error) {
    if (!isDamage(error)) throw error // The caller examines the file.
  } finally {
    connection.close()
  }
}

function setAside(path: string, damage: string, log: DatabaseOptions['log']): void {
  const aside = `${path}.damaged-${new Date().toISOString().replace(/[-:.]/g, '')}`
  for (const suffix of suffixes) {
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix)
  }
  log.error(`${path} is damaged (${damage}): it is now ${aside}, what was in it is not served, and a new file begins`)
}

function connect(sqlite: Sqlite, path: string, sync: DatabaseOptions['sync']): Connection {
  const connection = new sqlite.DatabaseSync(path)
  try {
    connection.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
    const mode = connection.prepare('PRAGMA journal_mode = WAL').get()?.['journal_mode']
    if (mode !== 'wal') {
      throw new DataError(`Cannot open ${path}: its file system has no shared memory: name another paths.data`)
    }
    connection.exec(`PRAGMA synchronous = ${sync}; PRAGMA journal_size_limit = ${maxIdleWalBytes}`)
    migrate(connection, path)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}
