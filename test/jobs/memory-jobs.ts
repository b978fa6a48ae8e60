/**
 * The contract of a job store in its simplest form, in memory: a model for the other stores, and a store for tests that
 * must run on a Node without SQLite.
 */
import {
  endedTooOften,
  keepDeadMs,
  maxDead,
  maxEnds,
  scheduleKey,
  type Claim,
  type JobCounts,
  type JobQuery,
  type JobState,
  type JobStore,
  type ListedJob,
  type NewJob,
  type Outcome,
  type ScheduleStep,
} from '../../lib/jobs/job-store.ts'

interface Job {
  readonly id: number
  readonly name: string
  readonly key: string | null
  readonly data: string | null
  state: JobState
  due: number
  tries: number
  ends: number
  owner: string
  error: string
  ended: number
}

const order: readonly JobState[] = ['dead', 'running', 'waiting']
const isBefore = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** A store. */
export class MemoryJobs implements JobStore {
  readonly #now: () => number
  #jobs: Job[] = []
  #lastId = 0
  readonly #schedules = new Map<string, { spec: string; next: number }>()
  readonly #done = new Map<string, { day: string; name: string; count: number }>()
  readonly #listeners: (() => void)[] = []

  /** @param earlier a store whose process was killed: its jobs are taken over */
  constructor(now: () => number, earlier?: MemoryJobs) {
    this.#now = now
    if (earlier === undefined) return
    this.#jobs = structuredClone(earlier.#jobs).filter((job) => job.state !== 'dead' || job.ended >= now() - keepDeadMs)
    this.#lastId = earlier.#lastId
    this.#schedules = structuredClone(earlier.#schedules)
    this.#done = structuredClone(earlier.#done)
    this.#giveBack((job) => job.state === 'running')
  }

  enqueue({ name, key, data, at }: NewJob): string {
    const same = this.#jobs.find((job) => job.state === 'waiting' && key !== null && job.name === name && job.key === key)
    if (same !== undefined) return String(same.id)
    const id = (this.#lastId += 1)
    const due = at ?? this.#now()
    this.#jobs.push({ id, name, key, data, state: 'waiting', due, tries: 0, ends: 0, owner: '', error: '', ended: 0 })
    this.#report()
    return String(id)
  }

  claim(owner: string, names: readonly string[], count: number): Claim {
    const waiting = (): Job[] => this.#jobs.filter((job) => job.state === 'waiting' && names.includes(job.name))
    const due = waiting().filter((job) => job.due <= this.#now()).sort((a, b) => a.due - b.due || a.id - b.id)
    const jobs = due.slice(0, count)
    for (const job of jobs) Object.assign(job, { state: 'running', owner })
    const next = Math.min(...waiting().map((job) => job.due))
    return {
      jobs: jobs.map(({ id, name, data, tries }) => ({ id: String(id), name, data, attempt: tries + 1 })),
      nextAt: next === Infinity ? null : next,
    }
  }

  settle(owner: string, outcomes: readonly Outcome[]): void {
    for (const outcome of outcomes) {
      const job = this.#jobs.find((each) => String(each.id) === outcome.id && each.state === 'running' && each.owner === owner)
      if (job !== undefined) this.#end(job, outcome)
    }
  }

  release(owner: string): void {
    this.#giveBack((job) => job.state === 'running' && job.owner === owner)
  }

  plan(name: string, spec: string, next: number): number {
    const known = this.#schedules.get(name)
    if (known?.spec === spec) return known.next
    this.#schedules.set(name, { spec, next })
    return next
  }

  advance({ name, from, to, runs }: ScheduleStep): boolean {
    const schedule = this.#schedules.get(name)
    if (schedule?.next !== from) return false
    schedule.next = to
    if (runs) this.enqueue({ name, data: null, key: scheduleKey, at: null })
    return true
  }

  counts(): JobCounts[] {
    const today = new Date(this.#now()).toDateString()
    const done = [...this.#done.values()].filter(({ day }) => day === today)
    const names = new Set([...this.#jobs, ...done].map(({ name }) => name))
    return [...names].sort(isBefore).map((name) => {
      const of = (state: JobState): number => this.#jobs.filter((job) => job.name === name && job.state === state).length
      const count = done.find((each) => each.name === name)?.count ?? 0
      return { name, waiting: of('waiting'), running: of('running'), dead: of('dead'), done: count }
    })
  }

  list({ name, state, offset, count }: JobQuery): ListedJob[] {
    return this.#jobs
      .filter((job) => (name === null || job.name === name) && (state === null || job.state === state))
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || isBefore(a.name, b.name) || b.id - a.id)
      .slice(offset, count < 0 ? undefined : offset + count)
      .map(({ id, name, state, tries, due, ended, key, error }) => {
        const isDead = state === 'dead'
        return { id: String(id), name, state, attempt: isDead ? tries : tries + 1, at: isDead ? ended : due, key, error }
      })
  }

  retry(id: string): boolean {
    const job = this.#idle(id)
    if (job?.state === 'dead') Object.assign(job, { tries: 0, error: '' })
    if (job !== undefined) this.#wait(Object.assign(job, { ends: 0 }), this.#now())
    return job !== undefined
  }

  discard(id: string): boolean {
    const job = this.#idle(id)
    this.#jobs = this.#jobs.filter((each) => each !== job)
    return job !== undefined
  }

  onDue(listener: () => void): void {
    this.#listeners.push(listener)
  }

  close(): void {}

  #idle(id: string): Job | undefined {
    return this.#jobs.find((job) => String(job.id) === id && job.state !== 'running')
  }

  #end(job: Job, outcome: Outcome): void {
    switch (outcome.end) {
      case 'done': {
        const { name } = job
        this.#jobs = this.#jobs.filter((each) => each !== job)
        const day = new Date(this.#now()).toDateString()
        const key = `${day} ${name}`
        this.#done.set(key, { day, name, count: (this.#done.get(key)?.count ?? 0) + 1 })
        return
      }
      case 'back':
        return this.#wait(job, job.due)
      case 'retry':
        return this.#wait(Object.assign(job, { tries: job.tries + 1, ends: 0, error: outcome.error }), outcome.at)
      case 'dead':
        return this.#die(job, outcome.error)
    }
  }

  #giveBack(isChosen: (job: Job) => boolean): void {
    for (const job of this.#jobs.filter(isChosen)) {
      job.ends += 1
      if (job.ends >= maxEnds) this.#die(job, endedTooOften)
      else this.#wait(job, job.due)
    }
  }

  #wait(job: Job, due: number): void {
    Object.assign(job, { state: 'waiting', owner: '', due })
    this.#report()
  }

  #die(job: Job, error: string): void {
    Object.assign(job, { state: 'dead', owner: '', tries: job.tries + 1, error, ended: this.#now() })
    const dead = this.#jobs.filter((each) => each.name === job.name && each.state === 'dead')
    const gone = dead.sort((a, b) => b.ended - a.ended || b.id - a.id).slice(maxDead)
    this.#jobs = this.#jobs.filter((each) => !gone.includes(each))
  }

  #report(): void {
    for (const listener of this.#listeners) queueMicrotask(listener)
  }
}
