/**
 * The job store in the SQLite file of a server.
 *
 * The process that has opened the file is the only one that writes it, so the store knows without a clock when the
 * owner of a job has gone: on opening, every running job belongs to a process of an earlier run.
 *
 * Surprise: `claim` must not search the jobs of every name each time. The store remembers, by name, a lower bound of
 * the time at which the next job is due, and asks the file only where that has passed.
 */
import {
  dayOf,
  endedTooOften,
  keepDeadMs,
  maxDead,
  maxEnds,
  scheduleKey,
  type Claim,
  type JobCounts,
  type JobQuery,
  type JobStore,
  type ListedJob,
  type NewJob,
  type Outcome,
  type ScheduleStep,
} from '../jobs/job-store.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Database } from './database.ts'
import { claimedJob, countJobs, listJobs, type JobRow } from './job-rows.ts'
import type { Statement } from './sqlite.ts'

/** The number of the state in the file. */
const dead = 2
/** The longest error that is kept, in characters. */
const maxErrorLength = 4000
/** Yesterday's counts stay for a while, in case the clock is set back. */
const keptDays = 2
const sweepEveryMs = 3_600_000

/**
 * Opens the job store.
 * @param now milliseconds since 1970
 * @throws DataError when the jobs of earlier runs cannot be given back, as a rejection
 */
export async function openJobs(database: Database, log: ModuleLogger, now: () => number): Promise<JobStore> {
  const jobs = new SqliteJobs(database, log, now)
  try {
    await jobs.open()
  } catch (error) {
    jobs.close()
    throw error
  }
  return jobs
}

/** The store. It does not own the database. */
class SqliteJobs implements JobStore {
  readonly #database: Database
  readonly #log: ModuleLogger
  readonly #now: () => number
  /** By name: no job of it that waits is due earlier. A missing name has no job that waits. */
  #due = new Map<string, number>()
  /** Whether a transaction was rolled back, so that `#due` must be read again. */
  #isStale = false
  readonly #listeners = new Set<() => void>()
  readonly #sweep: NodeJS.Timeout

  constructor(database: Database, log: ModuleLogger, now: () => number) {
    this.#database = database
    this.#log = log
    this.#now = now
    database.onRollback(() => (this.#isStale = true))
    const sweep = (): void => void this.#removeOld().catch(() => {}) // The database has logged it; the next may work.
    this.#sweep = setInterval(sweep, sweepEveryMs).unref()
  }

  /** Gives back the jobs that ran when the last run ended. Call it first. */
  async open(): Promise<void> {
    this.#readDue()
    await this.#database.write(() => this.#giveBack(this.#all<JobRow>('SELECT * FROM jobs WHERE state = 1')))
    await this.#removeOld()
  }

  enqueue(job: NewJob): Promise<string> {
    return this.#database.write(() => this.#add(job))
  }

  async claim(owner: string, names: readonly string[], count: number): Promise<Claim> {
    if (this.#isStale) this.#readDue()
    const now = this.#now()
    const isDue = (name: string): boolean => (this.#due.get(name) ?? Infinity) <= now
    if (!names.some(isDue)) return { jobs: [], nextAt: this.#nextOf(names) }
    return this.#database.write(() => {
      const found = names.filter(isDue).flatMap((name) => this.#dueJobs(name, now, count))
      found.sort((a, b) => a.due - b.due || a.id - b.id)
      const jobs = found.slice(0, count)
      for (const { id } of jobs) this.#run('UPDATE jobs SET state = 1, owner = ? WHERE id = ?', owner, id)
      // The first that was found and not claimed bounds the rest of its name.
      for (const { name, due } of found.slice(count).reverse()) this.#due.set(name, due)
      return { jobs: jobs.map(claimedJob), nextAt: this.#nextOf(names) }
    })
  }

  settle(owner: string, outcomes: readonly Outcome[]): Promise<void> {
    return this.#database.write(() => {
      for (const outcome of outcomes) {
        const id = Number(outcome.id)
        const row = this.#get<JobRow>('SELECT * FROM jobs WHERE id = ? AND state = 1 AND owner = ?', id, owner)
        if (row !== undefined) this.#end(row, outcome)
      }
    })
  }

  release(owner: string): Promise<void> {
    return this.#database.write(() => {
      this.#giveBack(this.#all<JobRow>('SELECT * FROM jobs WHERE state = 1 AND owner = ?', owner))
    })
  }

  plan(name: string, spec: string, next: number): Promise<number> {
    return this.#database.write(() => {
      const known = this.#get<{ next: number }>('SELECT next FROM schedules WHERE name = ? AND spec = ?', name, spec)
      if (known !== undefined) return known.next
      this.#run('INSERT OR REPLACE INTO schedules (name, spec, next) VALUES (?, ?, ?)', name, spec, next)
      return next
    })
  }

  advance({ name, from, to, runs }: ScheduleStep): Promise<boolean> {
    return this.#database.write(() => {
      const { changes } = this.#run('UPDATE schedules SET next = ? WHERE name = ? AND next = ?', to, name, from)
      if (changes === 0) return false
      if (runs) this.#add({ name, data: null, key: scheduleKey, at: null })
      return true
    })
  }

  counts(): readonly JobCounts[] {
    return countJobs(this.#database, dayOf(this.#now()))
  }

  list(query: JobQuery): readonly ListedJob[] {
    return listJobs(this.#database, query)
  }

  retry(id: string): Promise<boolean> {
    return this.#database.write(() => {
      const row = this.#find(id)
      if (row === undefined) return false
      const isDead = row.state === dead
      this.#wait({ ...row, tries: isDead ? 0 : row.tries }, this.#now(), 0, isDead ? null : row.error)
      return true
    })
  }

  discard(id: string): Promise<boolean> {
    return this.#database.write(() => {
      const row = this.#find(id)
      if (row !== undefined) this.#run('DELETE FROM jobs WHERE id = ?', row.id)
      return row !== undefined
    })
  }

  onDue(listener: () => void): void {
    this.#listeners.add(listener)
  }

  close(): void {
    clearInterval(this.#sweep)
    this.#listeners.clear()
  }

  // ---- within a transaction ----

  #add({ name, data, key, at }: NewJob): string {
    if (key !== null) {
      const found = this.#get<JobRow>('SELECT id FROM jobs WHERE state = 0 AND name = ? AND key = ? LIMIT 1', name, key)
      if (found !== undefined) return String(found.id)
    }
    const now = this.#now()
    const due = at ?? now
    const { lastInsertRowid } = this.#run(
      'INSERT INTO jobs (name, key, state, due, tries, ends, data, created) VALUES (?, ?, 0, ?, 0, 0, ?, ?)',
      name, key, due, data, now,
    )
    this.#waits(name, due)
    return String(lastInsertRowid)
  }

  /** Finds the first jobs of a name that are due, one more than may be claimed, and sets the bound of the name. */
  #dueJobs(name: string, now: number, count: number): JobRow[] {
    const rows = this.#all<JobRow>(
      'SELECT * FROM jobs WHERE state = 0 AND name = ? ORDER BY due, id LIMIT ?', name, count + 1,
    )
    const due = rows.filter((row) => row.due <= now)
    const next = rows[due.length]
    if (next !== undefined) this.#due.set(name, next.due)
    else if (rows.length <= count) this.#due.delete(name)
    return due
  }

  #end(row: JobRow, outcome: Outcome): void {
    const { id, name } = row
    switch (outcome.end) {
      case 'done':
        this.#run('DELETE FROM jobs WHERE id = ?', id)
        this.#run(
          'INSERT INTO jobs_done (day, name, count) VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1',
          dayOf(this.#now()), name,
        )
        return
      case 'back':
        return this.#wait(row, row.due, null, row.error)
      case 'retry':
        return this.#wait({ ...row, tries: row.tries + 1 }, outcome.at, 0, outcome.error)
      case 'dead':
        return this.#die({ ...row, tries: row.tries + 1 }, outcome.error)
    }
  }

  /** @param ends null: unchanged */
  #wait({ id, name, tries }: JobRow, due: number, ends: number | null, error: string | null): void {
    this.#run(
      'UPDATE jobs SET state = 0, owner = NULL, ended = NULL, due = ?, tries = ?, ends = coalesce(?, ends), error = ? '
        + 'WHERE id = ?',
      due, tries, ends, error?.slice(0, maxErrorLength) ?? null, id,
    )
    this.#waits(name, due)
  }

  #die({ id, name, tries }: JobRow, error: string): void {
    this.#run(
      'UPDATE jobs SET state = 2, owner = NULL, ended = ?, tries = ?, error = ? WHERE id = ?',
      this.#now(), tries, error.slice(0, maxErrorLength), id,
    )
    this.#run(
      'DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = 2 AND name = ? '
        + 'ORDER BY ended DESC, id DESC LIMIT -1 OFFSET ?)',
      name, maxDead,
    )
  }

  #giveBack(rows: readonly JobRow[]): void {
    for (const row of rows) {
      this.#run('UPDATE jobs SET ends = ends + 1 WHERE id = ?', row.id)
      const ends = this.#get<{ ends: number }>('SELECT ends FROM jobs WHERE id = ?', row.id)?.ends ?? 0
      if (ends < maxEnds) {
        this.#wait(row, row.due, null, row.error)
        continue
      }
      this.#die({ ...row, tries: row.tries + 1 }, endedTooOften)
      this.#log.error(`job ${row.id} (${row.name}) is dead: ${endedTooOften}`)
    }
  }

  #find(id: string): JobRow | undefined {
    return this.#get<JobRow>('SELECT * FROM jobs WHERE id = ? AND state <> 1', Number(id))
  }

  async #removeOld(): Promise<void> {
    const now = this.#now()
    await this.#database.write(() => {
      this.#run('DELETE FROM jobs WHERE state = 2 AND ended < ?', now - keepDeadMs)
      this.#run('DELETE FROM jobs_done WHERE day < ?', dayOf(now - keptDays * 86_400_000))
    })
  }

  // ---- what waits ----

  #waits(name: string, due: number): void {
    const known = this.#due.get(name) ?? Infinity
    if (due < known) this.#due.set(name, due)
    if (due < known || due <= this.#now()) for (const listener of this.#listeners) queueMicrotask(listener)
  }

  #nextOf(names: readonly string[]): number | null {
    const next = names.reduce((least, name) => Math.min(least, this.#due.get(name) ?? Infinity), Infinity)
    return next === Infinity ? null : next
  }

  #readDue(): void {
    const rows = this.#all<{ name: string; due: number }>(
      'SELECT name, min(due) AS due FROM jobs WHERE state = 0 GROUP BY name',
    )
    this.#due = new Map(rows.map(({ name, due }) => [name, due]))
    this.#isStale = false
  }

  // ---- statements ----

  #run(sql: string, ...values: (string | number | null)[]): ReturnType<Statement['run']> {
    return this.#database.prepare(sql).run(...values)
  }

  #get<Row>(sql: string, ...values: (string | number | null)[]): Row | undefined {
    return this.#database.prepare(sql).get(...values) as Row | undefined // The columns of the statement.
  }

  #all<Row>(sql: string, ...values: (string | number | null)[]): Row[] {
    return this.#database.prepare(sql).all(...values) as Row[] // The columns of the statement.
  }
}
