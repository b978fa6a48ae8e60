/**
 * The database file and its tables, as a list of migrations. The file has the number of those that ran (`PRAGMA
 * user_version`), so a released migration never changes: a new one follows.
 */
import { join } from 'node:path'
import { DataError, type Connection } from './sqlite.ts'

/** Version n of the file is what the first n of these make. */
export const migrations: readonly string[] = [
  `CREATE TABLE jobs (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     name TEXT NOT NULL,
     key TEXT,
     state INTEGER NOT NULL,
     due INTEGER NOT NULL,
     tries INTEGER NOT NULL,
     ends INTEGER NOT NULL,
     owner TEXT,
     data TEXT,
     error TEXT,
     created INTEGER NOT NULL,
     ended INTEGER
   ) STRICT;
   CREATE INDEX jobs_due ON jobs (name, due, id) WHERE state = 0;
   CREATE INDEX jobs_key ON jobs (name, key) WHERE state = 0 AND key IS NOT NULL;
   CREATE INDEX jobs_state ON jobs (state DESC, name, id DESC);
   CREATE TABLE schedules (name TEXT PRIMARY KEY, spec TEXT NOT NULL, next INTEGER NOT NULL) STRICT;
   CREATE TABLE jobs_done (
     day TEXT NOT NULL,
     name TEXT NOT NULL,
     count INTEGER NOT NULL,
     PRIMARY KEY (day, name)
   ) STRICT;
   CREATE TABLE sessions (id TEXT PRIMARY KEY, fields TEXT NOT NULL, expires INTEGER NOT NULL) STRICT, WITHOUT ROWID;
   CREATE INDEX sessions_expires ON sessions (expires);
   CREATE TABLE channels (
     name TEXT PRIMARY KEY,
     last_id INTEGER NOT NULL,
     max_events REAL NOT NULL,
     max_age REAL NOT NULL,
     used INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE channels_forgotten (last_id INTEGER PRIMARY KEY) STRICT;
   CREATE TABLE channel_events (
     channel TEXT NOT NULL,
     id INTEGER NOT NULL,
     text TEXT NOT NULL,
     at INTEGER NOT NULL,
     PRIMARY KEY (channel, id)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE queues (
     name TEXT PRIMARY KEY,
     waiting INTEGER NOT NULL,
     max_events REAL NOT NULL,
     max_age REAL NOT NULL,
     used INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE queue_events (
     id INTEGER PRIMARY KEY,
     queue TEXT NOT NULL,
     text TEXT NOT NULL,
     at INTEGER NOT NULL,
     taken INTEGER NOT NULL,
     lease TEXT,
     leased_until INTEGER
   ) STRICT;
   CREATE INDEX queue_events_order ON queue_events (taken, queue, id);`,
]

/** Returns the path of the database in `paths.data`. */
export function databasePath(folder: string): string {
  return join(folder, 'svc.db')
}

/** Returns the version of a database: the number of migrations that ran. Negative only in a damaged file. */
export function versionOf(connection: Connection): number {
  return Number(connection.prepare('PRAGMA user_version').get()?.['user_version'])
}

/** Returns what is wrong with the version of a file, if it is newer than these sources. */
export function newerVersionProblem(file: string, version: number): string | undefined {
  if (version <= migrations.length) return undefined
  const known = `this one knows versions up to ${migrations.length}`
  return `${file} has version ${version}, of a newer svc; ${known}: run the newer svc, or name another paths.data`
}

/**
 * Runs the missing migrations in one transaction.
 * @throws DataError if the file is of a newer version; an error of SQLite, which leaves the transaction open
 */
export function migrate(connection: Connection, file: string): void {
  connection.exec('BEGIN IMMEDIATE') // Also without a migration: it fails when the file is read-only.
  const version = versionOf(connection)
  const problem = newerVersionProblem(file, version)
  if (problem !== undefined) throw new DataError(problem)
  for (const migration of migrations.slice(version)) connection.exec(migration)
  if (version < migrations.length) connection.exec(`PRAGMA user_version = ${migrations.length}`)
  connection.exec('COMMIT')
}
