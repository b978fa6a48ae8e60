/**
 * The job store in Redis or Valkey, for servers on several machines. Every process of every server opens its own.
 *
 * The clock of Redis decides which jobs are due, so that all servers agree. `claim` learns in how many milliseconds the
 * next one is, and adds them to the clock of this process.
 *
 * An owner renews itself every few seconds. One that does not for `ownerMs` is gone: any other process gives its jobs
 * back. It gives a single job back earlier, when the time for its try is over and its owner has not said so. Each time
 * the owner also names the jobs that it has, so that those of a claim whose reply was lost are given back, too.
 */
import { isJsonLine } from '../base/json-text.ts'
import { reasonOf } from '../base/reason.ts'
import { HttpError } from '../http/errors.ts'
import {
  dayOf,
  endedTooOften,
  type Claim,
  type ClaimedJob,
  type JobCounts,
  type JobQuery,
  type JobState,
  type JobStore,
  type ListedJob,
  type NewJob,
  type Outcome,
  type ScheduleStep,
} from '../jobs/job-store.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Redis, RedisScript } from './client.ts'
import { answered } from './errors.ts'
import { JobOwners } from './job-owners.ts'
import { createJobScripts } from './job-scripts.ts'
import { decoded, encoded, integerIn, listIn, textIn, type Argument, type Reply } from './reply.ts'

interface RedisJobsOptions {
  /** Stays open when the store is closed. */
  readonly redis: Redis
  /** The prefix of every key, such as `svc:`. */
  readonly prefix: string
  /** The prefix of every channel of PUBLISH. */
  readonly channelPrefix: string
  /** Of module `server`. */
  readonly log: Pick<ModuleLogger, 'error'>
  /**
   * Called for each damaged job, which was removed, and each time a connected server refuses a command, for example for
   * lack of memory.
   */
  readonly onProblem: (message: string) => void
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** How often owners are renewed, in milliseconds. */
const beatMs = 5000
const sweepMs = 3_600_000
/** How many jobs one script lists: a script blocks the whole server. */
const pageJobs = 200
/** The longest error that is kept, in characters. */
const maxErrorLength = 4000
const listedStates: readonly JobState[] = ['dead', 'running', 'waiting']

/** A store. When the server is away, its functions reject with HttpError 503 `shared_away`. */
export class RedisJobs implements JobStore {
  readonly #options: RedisJobsOptions
  readonly #scripts: ReturnType<typeof createJobScripts>
  readonly #channel: string
  readonly #owners = new JobOwners()
  readonly #listeners = new Set<() => void>()
  readonly #timers: readonly NodeJS.Timeout[]
  readonly #stopWatching: () => void
  /** The subscription that reports jobs that are due, once there is a listener; undefined when it was refused. */
  #subscription: Promise<() => void> | undefined
  #isClosed = false

  constructor(options: RedisJobsOptions) {
    const { redis, channelPrefix } = options
    this.#options = options
    this.#scripts = createJobScripts(redis)
    this.#channel = `${channelPrefix}jobs`
    this.#timers = [
      setInterval(() => void this.beat(), beatMs).unref(),
      setInterval(() => void this.sweep(), sweepMs).unref(),
    ]
    this.#stopWatching = redis.onState((state) => {
      if (state === 'ready') this.#connected()
    })
    void this.sweep()
  }

  /** Adds a job. It may have been added when this rejects because the reply was lost. */
  async enqueue({ name, data, key, at }: NewJob): Promise<string> {
    const values = [encoded(name), data === null ? '' : encoded(data), key === null ? '' : encoded(key), at ?? '']
    return shortId(await this.#run(this.#scripts.enqueue, ...values))
  }

  async claim(...[owner, names, count, limitsMs = []]: Parameters<JobStore['claim']>): Promise<Claim> {
    if (names.length === 0) return { jobs: [], nextAt: null }
    const values = names.flatMap((name, at) => [encoded(name), limitsMs[at] ?? ''])
    const { waitMs, jobs } = await this.#owners.claims(owner, async () => {
      const [wait, rows] = listIn(await this.#run(this.#scripts.claim, owner, count, ...values))
      const jobs = listIn(rows).map(claimedJob)
      const waitMs = textIn(wait) === '' ? null : integerIn(wait)
      return { waitMs, jobs, ids: jobs.map(({ id }) => id) }
    })
    const nextAt = waitMs === null ? null : this.#options.now() + waitMs
    return { jobs: await this.#withoutDamaged(owner, jobs), nextAt }
  }

  async settle(owner: string, outcomes: readonly Outcome[]): Promise<void> {
    if (outcomes.length === 0) return
    const now = this.#options.now()
    const values = outcomes.flatMap((outcome) => {
      const { id, end } = outcome
      const delay = end === 'retry' ? Math.round(outcome.at - now) : 0
      const error = end === 'retry' || end === 'dead' ? encoded(outcome.error.slice(0, maxErrorLength)) : ''
      return [longId(id), end, delay, error]
    })
    await this.#run(this.#scripts.settle, owner, dayOf(now), ...values)
    this.#owners.settled(owner, outcomes.map(({ id }) => id))
  }

  async release(owner: string): Promise<void> {
    this.#owners.delete(owner)
    await this.#run(this.#scripts.release, owner, 1)
  }

  async plan(name: string, spec: string, next: number): Promise<number> {
    return integerIn(await this.#run(this.#scripts.plan, encoded(name), encoded(spec), next))
  }

  async advance({ name, from, to, runs }: ScheduleStep): Promise<boolean> {
    return integerIn(await this.#run(this.#scripts.advance, encoded(name), from, to, runs ? 1 : 0)) === 1
  }

  async counts(): Promise<readonly JobCounts[]> {
    const [states, done] = listIn(await this.#run(this.#scripts.counts, dayOf(this.#options.now())))
    const counts = new Map<string, JobCounts>()
    for (const [name, waiting, running, dead] of rowsOf(states, 4)) {
      const numbers = { waiting: integerIn(waiting), running: integerIn(running), dead: integerIn(dead), done: 0 }
      counts.set(valueIn(name), { name: valueIn(name), ...numbers })
    }
    for (const [name, count] of rowsOf(done, 2)) {
      const known = counts.get(valueIn(name)) ?? { name: valueIn(name), waiting: 0, running: 0, dead: 0 }
      counts.set(known.name, { ...known, done: integerIn(count) })
    }
    const all = [...counts.values()].filter(({ waiting, running, dead, done }) => waiting + running + dead + done > 0)
    return all.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Lists jobs, in pieces: one that changes its state meanwhile may be missing, or listed twice. */
  async list({ name, state, offset, count }: JobQuery): Promise<readonly ListedJob[]> {
    const counts = (await this.counts()).filter((each) => name === null || each.name === name)
    const listed: ListedJob[] = []
    const most = count < 0 ? Infinity : count
    let skipped = offset
    for (const each of listedStates.filter((one) => state === null || one === state)) {
      for (const { name, [each]: size } of counts) {
        if (listed.length < most && skipped < size) await this.#listInto(listed, name, each, skipped, most)
        skipped = Math.max(0, skipped - size)
      }
    }
    return listed
  }

  async retry(id: string): Promise<boolean> {
    return integerIn(await this.#run(this.#scripts.retry, longId(id))) === 1
  }

  async discard(id: string): Promise<boolean> {
    return integerIn(await this.#run(this.#scripts.discard, longId(id))) === 1
  }

  onDue(listener: () => void): void {
    this.#listeners.add(listener)
    this.#subscribe()
  }

  /** Gives back the jobs of its owners, and frees everything. Never rejects: else they are gone after a while. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const timer of this.#timers) clearInterval(timer)
    this.#stopWatching()
    this.#listeners.clear()
    const leaving = this.#owners.clear().map((owner) => this.#run(this.#scripts.release, owner, 0))
    await Promise.allSettled(leaving)
    const unsubscribe = await this.#subscription?.catch(() => undefined) // It was refused.
    unsubscribe?.()
  }

  /** Renews the owners, and gives back what they have without knowing. Never rejects; the next beat repeats it. */
  async beat(): Promise<void> {
    if (this.#listeners.size > 0) this.#subscribe()
    await Promise.all(this.#owners.certain().map(({ owner, ids }) =>
      this.#run(this.#scripts.beat, owner, ...ids.map(longId)).catch(this.#reportOther)))
  }

  /** Removes dead jobs that are too old. Never rejects; the next sweep repeats it. */
  async sweep(): Promise<void> {
    await this.#run(this.#scripts.sweep).catch(this.#reportOther)
  }

  #connected(): void {
    void this.beat()
    this.#tellListeners() // What it was told before is old.
  }

  readonly #tellListeners = (): void => {
    for (const listener of this.#listeners) listener()
  }

  /** Subscribes, unless that was done. While the server is away it is refused, and the next beat tries again. */
  #subscribe(): void {
    if (this.#subscription !== undefined) return
    const { redis, onProblem } = this.#options
    const listener = { onMessage: this.#tellListeners, onLost: () => {}, onReconnected: this.#tellListeners }
    const subscription = answered('a subscription', redis.subscribe(this.#channel, listener), onProblem)
    this.#subscription = subscription
    subscription.then(this.#tellListeners, (error: unknown) => {
      this.#subscription = undefined
      this.#reportOther(error)
    })
  }

  /** Runs a script, and reports the jobs that it has ended or removed. */
  async #run(script: RedisScript, ...values: readonly Argument[]): Promise<Reply> {
    const { prefix, log, onProblem } = this.#options
    const reply = script.run([`${prefix}jobs:`], this.#channel, ...values)
    const [result = null, tooOften, damaged] = listIn(await answered('a job', reply, onProblem))
    for (const [id, name] of rowsOf(tooOften, 2)) {
      log.error(`job ${shortId(id)} (${valueIn(name)}) is dead: ${endedTooOften}`)
    }
    for (const id of listIn(damaged)) this.#reportDamaged(shortId(id))
    return result
  }

  #reportDamaged(id: string): void {
    this.#options.onProblem(`job ${id} in the shared engine is damaged and was removed`)
  }

  /** Reports an error that nobody waits for, unless the server is away: the connection has logged that. */
  readonly #reportOther = (error: unknown): void => {
    if (this.#isClosed || isAway(error)) return
    this.#options.onProblem(`the shared engine refuses what the jobs need: ${reasonOf(error)}`)
  }

  /** Removes the jobs whose data nobody can have enqueued. */
  async #withoutDamaged(owner: string, jobs: readonly ClaimedJob[]): Promise<readonly ClaimedJob[]> {
    const isRight = ({ data }: ClaimedJob): boolean => data === null || isJsonLine(data)
    const right = jobs.filter(isRight)
    if (right.length === jobs.length) return jobs
    const wrong = jobs.filter((job) => !isRight(job)).map(({ id }) => id)
    this.#owners.settled(owner, wrong) // If this fails, the next beat gives them back.
    await this.#run(this.#scripts.drop, owner, ...wrong.map(longId)).catch(this.#reportOther)
    return right
  }

  /** Lists jobs of a name and a state. @param most how many there may be in the list */
  async #listInto(listed: ListedJob[], name: string, state: JobState, offset: number, most: number): Promise<void> {
    let below = ''
    for (let skipped = offset; listed.length < most; skipped = 0) {
      const count = Math.min(pageJobs, most - listed.length)
      const rows = listIn(await this.#run(this.#scripts.page, encoded(name), state, below, skipped, count)).map(listIn)
      for (const row of rows) if (row.length > 1) listed.push(listedJob(row, name, state))
      if (rows.length < count) return
      below = textIn(rows.at(-1)?.[0])
    }
  }
}

/** The form of ids in Redis. An id that the store cannot have given stays as it is: Redis has none like it. */
function longId(id: string): string {
  return /^[1-9]\d{0,15}$/.test(id) ? id.padStart(16, '0') : `?${encoded(id)}`
}

function shortId(id: Reply | undefined): string {
  return textIn(id).replace(/^0+/, '')
}

/** Decodes text; text that the store cannot have written stays as it is. */
function valueIn(reply: Reply | undefined): string {
  const text = textIn(reply)
  return decoded(text) ?? text
}

/** Splits a list into rows. */
function rowsOf(reply: Reply | undefined, width: number): (readonly Reply[])[] {
  const list = listIn(reply)
  return Array.from({ length: list.length / width }, (_, at) => list.slice(at * width, (at + 1) * width))
}

function claimedJob(row: Reply): ClaimedJob {
  const [id, name, attempt, data = null] = listIn(row)
  return {
    id: shortId(id),
    name: valueIn(name),
    data: data === null ? null : valueIn(data),
    attempt: integerIn(attempt),
  }
}

function listedJob([id, tries, at, key, error]: readonly Reply[], name: string, state: JobState): ListedJob {
  return {
    id: shortId(id),
    name,
    state,
    attempt: integerIn(tries) + (state === 'dead' ? 0 : 1),
    at: integerIn(at),
    key: valueIn(key) === '' ? null : valueIn(key),
    error: valueIn(error),
  }
}

function isAway(error: unknown): boolean {
  return error instanceof HttpError && error.code === 'shared_away'
}
