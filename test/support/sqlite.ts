/** `node:sqlite`, which not every supported Node has, and of which the type package knows nothing. */

/** What tests use of `DatabaseSync`. */
interface Database {
  exec(sql: string): void
  prepare(sql: string): { all(...values: readonly unknown[]): object[] }
  close(): void
}

const sqlite = process.getBuiltinModule('node:sqlite') as { DatabaseSync: new (file: string) => Database } | undefined

/** Whether this Node has `node:sqlite`. */
export const hasSqlite = sqlite !== undefined

/** Opens a database, runs the work and closes it. Returns what the work returns. */
export function withDatabase<T>(file: string, work: (database: Database) => T): T {
  if (sqlite === undefined) throw new Error('This Node has no node:sqlite')
  const database = new sqlite.DatabaseSync(file)
  try {
    return work(database)
  } finally {
    database.close()
  }
}

/** The rows of a query, as plain objects. */
export function rowsOf(file: string, query: string): Record<string, unknown>[] {
  return withDatabase(file, (database) => database.prepare(query).all().map((row) => ({ ...row })))
}
