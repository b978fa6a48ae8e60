/**
 * The contract of a job store, which keeps the jobs of a server between those who enqueue them and the processes that
 * run them. Every function may return its result directly or as a promise.
 *
 * A job waits until it is due, runs, and is then gone, waits again, or is dead. Every store guarantees the following,
 * for any number of processes:
 *
 * 1. When `enqueue` has returned, the job outlives the end of every process.
 * 2. `claim` gives a job to one owner only. Of the jobs that are due, those that became due first are claimed first.
 * 3. A claimed job stays with its owner until `settle`, or until the owner is known to be gone: then it waits again,
 *    and is dead after its third such end. An owner that has not settled a job soon after its limit is gone for that
 *    job. `settle` of a job that the owner no longer has does nothing.
 * 4. `advance` succeeds for one caller only, so that each time of a schedule makes one job.
 * 5. Dead jobs are kept for 7 days, at most 1,000 of a name.
 * 6. A function that fails rejects or throws, and changes nothing.
 *
 * Times are milliseconds since 1970.
 */
import type { MaybePromise } from '../base/maybe-promise.ts'

/** A job to enqueue. */
export interface NewJob {
  readonly name: string
  /** JSON; null for a job without data. */
  readonly data: string | null
  readonly key: string | null
  /** When it is due; null: now. */
  readonly at: number | null
}

/** A job that its owner is to run. */
export interface ClaimedJob {
  readonly id: string
  readonly name: string
  readonly data: string | null
  /** The number of this try, from 1. */
  readonly attempt: number
}

/** The result of `claim`. */
export interface Claim {
  readonly jobs: readonly ClaimedJob[]
  /** No waiting job of these names is due earlier, and no owner counts as gone earlier; null: never. */
  readonly nextAt: number | null
}

/** How a try has ended: `back` when it was interrupted by a stop, which is not counted. */
export type Outcome =
  | { readonly id: string; readonly end: 'done' | 'back' }
  | { readonly id: string; readonly end: 'retry'; readonly at: number; readonly error: string }
  | { readonly id: string; readonly end: 'dead'; readonly error: string }

/** The states in which a store has a job, in the order of their numbers in a database. */
export const jobStates = ['waiting', 'running', 'dead'] as const

/** One of them. */
export type JobState = (typeof jobStates)[number]

/** A job as the panel shows it. */
export interface ListedJob {
  readonly id: string
  readonly name: string
  readonly state: JobState
  /** The number of its next, its running or its last try. */
  readonly attempt: number
  /** When it is due, or has died. */
  readonly at: number
  readonly key: string | null
  /** The last error, one line or more; '' if it has not failed. */
  readonly error: string
}

/** The number of jobs of a name, by state; `done` counts those of today. */
export interface JobCounts {
  readonly name: string
  readonly waiting: number
  readonly running: number
  readonly dead: number
  readonly done: number
}

/** Which jobs to list: the dead first, then those that run, then those that wait; of a name the newest first. */
export interface JobQuery {
  readonly name: string | null
  readonly state: JobState | null
  readonly offset: number
  /** -1: all. */
  readonly count: number
}

/** A store. */
export interface JobStore {
  /** Adds a job. Returns its id, or that of the job with this name and key that waits. */
  enqueue(job: NewJob): MaybePromise<string>
  /**
   * Gives jobs of these names that are due to an owner, at most `count`.
   * @param limitsMs after how many milliseconds the owner settles a job, in the order of the names; only a store that
   *   does not see the end of a process uses them
   */
  claim(owner: string, names: readonly string[], count: number, limitsMs?: readonly number[]): MaybePromise<Claim>
  /** Ends tries of an owner. */
  settle(owner: string, outcomes: readonly Outcome[]): MaybePromise<void>
  /** Gives back every job of an owner that has gone. */
  release(owner: string): MaybePromise<void>
  /**
   * Returns the next time of a schedule. Sets it if the store has none for this name, or one of another `spec`.
   * @param spec identifies the schedule
   */
  plan(name: string, spec: string, next: number): MaybePromise<number>
  /**
   * Moves a schedule on, and adds a job without data if `runs`, unless one of the schedule still waits. Returns whether
   * its next time was still `from`; otherwise nothing changes.
   */
  advance(schedule: ScheduleStep): MaybePromise<boolean>

  /** Returns the counts of every name that the store has. */
  counts(): MaybePromise<readonly JobCounts[]>
  list(query: JobQuery): MaybePromise<readonly ListedJob[]>
  /** Makes a dead job wait again with all its tries, or a waiting one due. Returns whether it was found. */
  retry(id: string): MaybePromise<boolean>
  /** Removes a job that is dead or waits. Returns whether it was found. */
  discard(id: string): MaybePromise<boolean>

  /** Calls the listener when a job may have become due earlier than `claim` has said. */
  onDue(listener: () => void): void
  /** Frees everything. */
  close(): MaybePromise<void>
}

/** A step of a schedule from one of its times to the next. */
export interface ScheduleStep {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly runs: boolean
}

/** The key of the jobs that a schedule adds, so that only one of them waits. */
export const scheduleKey = 'svc.schedule'
/** The ends of its process after which a job is dead. */
export const maxEnds = 3
/** The error of a job that is dead for that reason. */
export const endedTooOften = `its process ended ${maxEnds} times while the job ran`
/** Dead jobs are kept this long, in milliseconds. */
export const keepDeadMs = 7 * 86_400_000
/** The most dead jobs of a name that are kept. */
export const maxDead = 1000

/** Returns the local day by which jobs that are done are counted, `2026-11-28`. @param ms milliseconds since 1970 */
export function dayOf(ms: number): string {
  const date = new Date(ms)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
}
