/** The rows of jobs in the database, and what the panel reads of them. */
import { jobStates, type ClaimedJob, type JobCounts, type JobQuery, type ListedJob } from '../jobs/job-store.ts'
import type { Database } from './database.ts'

/** A row of the table `jobs`. */
export interface JobRow {
  readonly id: number
  readonly name: string
  /** An index of `jobStates`. */
  readonly state: number
  readonly key: string | null
  readonly due: number
  readonly tries: number
  readonly data: string | null
  readonly error: string | null
  readonly ended: number | null
}

const dead = jobStates.indexOf('dead')

/** Returns a job as its owner gets it. */
export function claimedJob({ id, name, data, tries }: JobRow): ClaimedJob {
  return { id: String(id), name, data, attempt: tries + 1 }
}

/** Counts the jobs. @param today the local day, as of `dayOf` */
export function countJobs(database: Database, today: string): readonly JobCounts[] {
  const counts = new Map<string, { -readonly [Member in keyof JobCounts]: JobCounts[Member] }>()
  const rows = [
    ...database.prepare('SELECT name, state, count(*) AS count FROM jobs GROUP BY state, name').all(),
    ...database.prepare('SELECT name, NULL AS state, count FROM jobs_done WHERE day = ?').all(today),
  ]
  for (const { name, state, count } of rows) {
    const key = String(name)
    const known = counts.get(key) ?? { name: key, waiting: 0, running: 0, dead: 0, done: 0 }
    counts.set(key, known)
    known[state === null ? 'done' : (jobStates[Number(state)] ?? 'dead')] = Number(count)
  }
  return [...counts.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Lists jobs, as `JobStore.list`. */
export function listJobs(database: Database, { name, state, offset, count }: JobQuery): readonly ListedJob[] {
  const sql = 'SELECT * FROM jobs WHERE (?1 IS NULL OR name = ?1) AND (?2 IS NULL OR state = ?2) '
    + 'ORDER BY state DESC, name, id DESC LIMIT ?3 OFFSET ?4'
  const index = state === null ? null : jobStates.indexOf(state)
  const rows = database.prepare(sql).all(name, index, count, offset) as unknown as JobRow[] // The columns of the table.
  return rows.map(listed)
}

function listed({ id, name, state, key, due, tries, error, ended }: JobRow): ListedJob {
  const isDead = state === dead
  return {
    id: String(id),
    name,
    state: jobStates[state] ?? 'dead',
    attempt: isDead ? tries : tries + 1,
    at: isDead ? (ended ?? due) : due,
    key,
    error: error ?? '',
  }
}
