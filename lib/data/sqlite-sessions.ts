/**
 * The session store in the SQLite file of a server.
 *
 * The file has the SHA-256 of an id, so that a backup reveals no session. Times are those of a clock that starts at the
 * time of the system and then runs steadily: setting the clock of the system ends no session while the server runs.
 */
import { createHash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'
import { fromFileText, toFileText } from '../session-stores/session-file.ts'
import type { Database } from './database.ts'

interface SqliteSessionsOptions {
  readonly database: Database
  /** Returns the problem with the fields of a session; undefined if valid. One with a problem counts as damaged. */
  readonly problemOf: (fields: Fields) => string | undefined
  /** Called with a message for each damaged session. */
  readonly onProblem: (message: string) => void
  /** Milliseconds since 1970, never set; by default as above. */
  readonly now?: () => number
}

/** The most sessions that one sweep removes. */
const sweepSize = 1000
/** A count reads an index: some 20 ms for a million sessions. */
const countEveryMs = 30_000

/** The store. It does not own the database. */
export class SqliteSessions implements SessionStore {
  readonly #database: Database
  readonly #problemOf: SqliteSessionsOptions['problemOf']
  readonly #onProblem: (message: string) => void
  readonly #now: () => number
  #damaged = 0
  #stored = 0
  #countedAtMs = -Infinity

  constructor({ database, problemOf, onProblem, now = steadyClock() }: SqliteSessionsOptions) {
    this.#database = database
    this.#problemOf = problemOf
    this.#onProblem = onProblem
    this.#now = now
  }

  get counts(): StoreCounts {
    return { evicted: 0, damaged: this.#damaged }
  }

  get stored(): number {
    const nowMs = this.#now()
    if (nowMs - this.#countedAtMs >= countEveryMs) {
      this.#countedAtMs = nowMs
      this.#stored = Number(this.#database.prepare('SELECT count(*) AS count FROM sessions').get()?.['count'])
    }
    return this.#stored
  }

  read(id: string): StoredSession | undefined {
    return this.#find(hashOf(id))
  }

  create(id: string, fields: Fields, ttlMs: number): Promise<void> {
    return this.#database.write(() => this.#save(hashOf(id), fields, ttlMs))
  }

  merge(id: string, changes: FieldChanges, ttlMs: number | undefined): Promise<boolean> {
    return this.#change(id, id, changes, ttlMs)
  }

  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    return this.#change(id, newId, changes, ttlMs)
  }

  destroy(id: string): Promise<void> {
    return this.#database.write(() => this.#remove(hashOf(id)))
  }

  sweep(): Promise<number> {
    return this.#database.write(() => {
      const sql = 'DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires <= ? LIMIT ?)'
      return this.#database.prepare(sql).run(this.#now(), sweepSize).changes
    })
  }

  /** No-op: the database stays open for others. */
  close(): void {}

  #change(id: string, newId: string, changes: FieldChanges, ttlMs: number | undefined): Promise<boolean> {
    return this.#database.write(() => {
      const hash = hashOf(id)
      const found = this.#find(hash)
      if (found === undefined) return false
      if (newId !== id) this.#remove(hash)
      this.#save(hashOf(newId), applyChanges(found.fields, changes), ttlMs ?? found.remainingMs)
      return true
    })
  }

  #find(hash: string): StoredSession | undefined {
    const row = this.#database.prepare('SELECT fields, expires FROM sessions WHERE id = ?').get(hash)
    if (row === undefined) return undefined
    const remainingMs = Number(row['expires']) - this.#now()
    if (remainingMs <= 0) return undefined
    const fields = fromFileText(Buffer.from(String(row['fields'])))
    const problem = typeof fields === 'string' ? fields : this.#problemOf(fields)
    if (typeof fields !== 'string' && problem === undefined) return { fields, remainingMs }
    this.#damaged += 1
    this.#onProblem(`ignored a damaged session in ${this.#database.path}: ${problem}`)
    return undefined
  }

  #save(hash: string, fields: Fields, ttlMs: number): void {
    const sql = 'INSERT OR REPLACE INTO sessions (id, fields, expires) VALUES (?, ?, ?)'
    this.#database.prepare(sql).run(hash, toFileText(fields), Math.ceil(this.#now() + ttlMs))
  }

  #remove(hash: string): void {
    this.#database.prepare('DELETE FROM sessions WHERE id = ?').run(hash)
  }
}

function hashOf(id: string): string {
  return createHash('sha256').update(id).digest('hex')
}

function steadyClock(): () => number {
  const startMs = Date.now() - performance.now()
  return () => startMs + performance.now()
}
