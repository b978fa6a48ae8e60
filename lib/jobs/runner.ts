/**
 * Runs the jobs of one process: claims as many as it has workers for, runs their actions, and settles them in the
 * store. It also moves the schedules on. It sleeps until the store reports a job or the next time has come.
 *
 * Surprise: a timer of Node keeps its duration when the clock is set. The runner therefore wakes at least every few
 * seconds to compare the times with the clock.
 */
import { randomUUID } from 'node:crypto'
import { JobFailed } from '../application/job-failed.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { isError, reasonOf, textOf } from '../base/reason.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { JobRecord } from './job-record.ts'
import type { ClaimedJob, JobStore, Outcome } from './job-store.ts'

/** A job of the files with its action. */
export interface LoadedJob {
  readonly record: JobRecord
  /** Runs the action. Rejects when its module cannot be loaded, too. */
  readonly run: (job: ClaimedJob, signal: AbortSignal) => Promise<unknown>
}

interface RunnerOptions {
  readonly store: JobStore
  /** How many jobs run concurrently, from 1. */
  readonly workers: number
  readonly log: ModuleLogger
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** From 0 to below 1. */
  readonly random: () => number
}

/** What this process has done since its start. */
export interface RunCounts {
  done: number
  /** Tries that failed, those after which the job is dead included. */
  failed: number
  dead: number
}

const maxBackoffMs = 3_600_000
/** The largest part of a delay that is added at random. */
const jitter = 0.25
const maxSleepMs = 5000
/** A store that stays away fails at each wake: the same error is logged once in this time. */
const sameFailureMs = 60_000

/** The runner of one process. It does nothing before `use`. */
export class Runner {
  readonly counts: RunCounts = { done: 0, failed: 0, dead: 0 }
  readonly #options: RunnerOptions
  readonly #owner = randomUUID()
  readonly #startedMs: number
  readonly #storeFailures: RateLimited
  readonly #running = new Map<string, AbortController>()
  /** Ended tries that the store does not know yet. */
  readonly #ended: Outcome[] = []
  #jobs: ReadonlyMap<string, LoadedJob> = new Map()
  /** The next time of each schedule of these jobs, as last seen in the store. */
  #times = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined
  /** The rounds in progress, if any, and whether another must follow. */
  #rounds: Promise<void> | undefined
  #isAskedAgain = false
  #isStopped = false
  /** Called when nothing runs and nothing is due. */
  readonly #whenIdle: (() => void)[] = []

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#startedMs = options.now()
    this.#storeFailures = new RateLimited(options.log.error, sameFailureMs)
    options.store.onDue(() => this.wake())
  }

  /** The number of jobs that run. */
  get running(): number {
    return this.#running.size
  }

  /** Replaces the jobs, and runs those that are due. Running ones keep their action. */
  use(jobs: ReadonlyMap<string, LoadedJob>): void {
    this.#jobs = jobs
    this.#times = new Map()
    this.wake()
  }

  /** Reports the ended tries to the store, and looks for jobs that are due. */
  wake(): void {
    const claims = this.#jobs.size > 0 && !this.#isStopped
    if (!claims && this.#ended.length === 0) return
    this.#isAskedAgain = true
    this.#rounds ??= this.#runRounds()
  }

  /** Resolves when no job runs and none is due. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve)
      this.wake()
      this.#reportIdle()
    })
  }

  /**
   * Claims no more jobs and waits for the running ones. After a while their signals abort, and they are given back.
   * Never rejects: when the store fails, its jobs are run again as those of a process that is gone.
   * @param timeoutMs how long to wait
   */
  async stop(timeoutMs: number): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    const timer = setTimeout(() => {
      for (const abort of this.#running.values()) abort.abort(new StoppedError())
    }, timeoutMs)
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve)
      this.#reportIdle()
    })
    clearTimeout(timer)
    try {
      await this.#settle() // What the last round could not report.
    } catch (error) {
      this.#reportFailure(error)
    }
  }

  #reportFailure(error: unknown): void {
    const message = `cannot reach the jobs: ${reasonOf(error)}`
    this.#storeFailures.say(message, message)
  }

  async #runRounds(): Promise<void> {
    let nextAt = Infinity
    try {
      while (this.#isAskedAgain) {
        this.#isAskedAgain = false
        await this.#settle()
        if (this.#isStopped) continue
        nextAt = Math.min(await this.#moveSchedules(), await this.#claim())
      }
    } catch (error) {
      this.#reportFailure(error)
    }
    this.#rounds = undefined
    if (!this.#isStopped) this.#sleepUntil(nextAt)
    this.#reportIdle()
  }

  #sleepUntil(nextAt: number): void {
    clearTimeout(this.#timer)
    const ms = Math.min(Math.max(nextAt - this.#options.now(), 1), maxSleepMs)
    this.#timer = setTimeout(() => this.wake(), ms).unref()
  }

  #reportIdle(): void {
    if (this.#rounds !== undefined || this.#running.size > 0) return
    for (const resolve of this.#whenIdle.splice(0)) resolve()
  }

  /** Reports the ended tries to the store. If it fails, the next round reports them again. */
  async #settle(): Promise<void> {
    const outcomes = this.#ended.splice(0)
    if (outcomes.length === 0) return
    try {
      await this.#options.store.settle(this.#owner, outcomes)
    } catch (error) {
      this.#ended.unshift(...outcomes)
      throw error
    }
  }

  /** Makes the jobs of the schedules whose time has come. Returns the next time of all. */
  async #moveSchedules(): Promise<number> {
    const { store, now } = this.#options
    const times = this.#times // A reload replaces it with the jobs.
    let earliest = Infinity
    for (const { record: { name, schedule, catch_up: catchUp } } of this.#jobs.values()) {
      if (schedule === undefined) continue
      const from = times.get(name) ?? (await store.plan(name, schedule.spec, schedule.next(now())))
      const to = schedule.next(now(), from)
      const isOver = from <= now()
      // A time beyond the next one: the clock was set back.
      const moves = isOver || to < from
      const runs = isOver && (catchUp || from >= this.#startedMs)
      const isOurs = moves && (await store.advance({ name, from, to, runs }))
      if (moves && !isOurs) {
        times.delete(name)
        this.#isAskedAgain = true // Another process was faster: read the time that it has set.
        continue
      }
      const next = moves ? to : from
      times.set(name, next)
      earliest = Math.min(earliest, next)
    }
    return earliest
  }

  /** Runs the jobs that are due. Returns when the next one is. */
  async #claim(): Promise<number> {
    const free = this.#options.workers - this.#running.size
    if (free <= 0 || this.#isStopped) return Infinity // The next one to end claims.
    const limitsMs = [...this.#jobs.values()].map(({ record }) => record.timeout_s * 1000)
    const { jobs, nextAt } = await this.#options.store.claim(this.#owner, [...this.#jobs.keys()], free, limitsMs)
    for (const job of jobs) void this.#run(job)
    return this.#running.size < this.#options.workers ? (nextAt ?? Infinity) : Infinity
  }

  async #run(job: ClaimedJob): Promise<void> {
    const abort = new AbortController()
    this.#running.set(job.id, abort)
    this.#ended.push(await this.#tried(job, abort))
    this.#running.delete(job.id)
    this.wake()
    this.#reportIdle()
  }

  /** Runs the action of a job, at most for its time. */
  async #tried(job: ClaimedJob, abort: AbortController): Promise<Outcome> {
    const { id, name } = job
    const loaded = this.#jobs.get(name)
    // It was claimed while a reload removed its record, or while the server was stopped.
    if (loaded === undefined || this.#isStopped) return { id, end: 'back' }
    const { signal } = abort
    const seconds = loaded.record.timeout_s
    const timeout = new Error(`it took longer than timeout_s, ${seconds} s`)
    const timer = setTimeout(() => abort.abort(timeout), seconds * 1000)
    const aborted = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }) // From here or `stop`.
    })
    try {
      await Promise.race([loaded.run(job, signal), aborted])
      this.counts.done += 1
      return { id, end: 'done' }
    } catch (error) {
      if (isError(error) && error instanceof StoppedError) return { id, end: 'back' }
      return this.#failed(job, loaded.record, error)
    } finally {
      clearTimeout(timer)
    }
  }

  #failed({ id, name, attempt }: ClaimedJob, { retries, backoff_s: backoffS }: JobRecord, error: unknown): Outcome {
    const { log, now, random } = this.#options
    const isLast = attempt > retries || (isError(error) && error instanceof JobFailed)
    this.counts.failed += 1
    if (isLast) this.counts.dead += 1
    const what = `job ${id} (${name}) failed at try ${attempt} of ${retries + 1}`
    const report = isLast ? log.error : log.warn
    report(isLast ? `${what} and is dead` : what, { thrown: error })
    const text = typeof error === 'string' && error !== '' ? error : textOf(error)
    if (isLast) return { id, end: 'dead', error: text }
    const delayMs = Math.min(backoffS * 1000 * 2 ** (attempt - 1), maxBackoffMs)
    return { id, end: 'retry', at: Math.round(now() + delayMs * (1 + jitter * random())), error: text }
  }
}

/** The reason of a signal that a stop has aborted. */
class StoppedError extends Error {
  override readonly message = 'the server is being stopped'
}
