/**
 * The jobs of one process: reads the job files, loads their actions, enqueues jobs and runs them.
 *
 * The store is opened when the first job file is used, so that an application without jobs has no database.
 */
import type { EnqueueOptions } from 'svc'
import { resolveAction, type ResolvedAction } from '../application/action.ts'
import type { PreparedJobs } from '../application/application.ts'
import { reasonOf } from '../base/reason.ts'
import type { ReloadProblem } from '../control/commands.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Modules } from '../modules/modules.ts'
import { createJobContext, type SharedMembers } from './job-context.ts'
import { JobFiles } from './job-files.ts'
import type { JobRecord } from './job-record.ts'
import type { JobCounts, JobQuery, JobStore, ListedJob } from './job-store.ts'
import { newJobOf } from './new-job.ts'
import { Runner, type LoadedJob, type RunCounts } from './runner.ts'

interface JobsOptions {
  /** `paths.jobs`, absolute. */
  readonly folder: string
  /** `paths.root`, absolute. */
  readonly root: string
  readonly modules: Pick<Modules, 'load'>
  readonly log: (module: string) => ModuleLogger
  /** `pool_jobs.workers`. */
  readonly workers: number
  /** Opens the store; called once, unless it rejects. */
  readonly openStore: () => Promise<JobStore>
  /** The members of the context that all jobs share, but `enqueue`. */
  readonly shared: () => Omit<SharedMembers, 'enqueue'>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** A name of the overview: a job of the files, or one that only the store has. */
export interface JobName extends JobCounts {
  /** '' when no job file has it. */
  readonly action: string
  /** The next time of its schedule; null without one. */
  readonly next: number | null
}

/** The jobs of one process. Nothing runs before `begin`. */
export class Jobs {
  readonly #options: JobsOptions
  #jobs: ReadonlyMap<string, LoadedJob> = new Map()
  /** Those of a reload that is in progress: its `setup` may enqueue them. */
  #nextJobs: ReadonlyMap<string, LoadedJob> | undefined
  #store: Promise<JobStore> | undefined
  #runner: Runner | undefined
  #hasBegun = false
  #areOptional = false

  constructor(options: JobsOptions) {
    this.#options = options
  }

  /** Whether the server may start without them: every record that was last read is optional. */
  get areOptional(): boolean {
    return this.#areOptional
  }

  /** Reads the job files and loads their actions. Nothing is used yet. */
  readonly prepare = async (): Promise<PreparedJobs> => {
    const { folder, root, modules } = this.#options
    const found = new JobFiles(folder, root)
    this.#areOptional = found.jobs.every(({ record }) => record.optional)
    const jobs = new Map<string, LoadedJob>()
    const broken: ReloadProblem[] = []
    const incomplete: ReloadProblem[] = []
    for (const { record, file, index } of found.jobs) {
      const { name, action } = record
      // A job runs no view, and has no description of the routes: `readJobRecord` requires a module.
      const sources = { root, modules, view: unreachable, description: unreachable }
      const resolved = await resolveAction(action, sources)
      jobs.set(name, { record, run: this.#run(resolved) })
      if (resolved.error === undefined) continue
      const problem = { file, index, name, error: resolved.error.message, ...found.placeOf(file, index, 'action') }
      ;(resolved.state === 'failed' ? broken : incomplete).push(problem)
    }
    return {
      problems: found.problems,
      broken,
      incomplete,
      notes: found.warnings,
      open: async () => {
        this.#nextJobs = jobs
        if (jobs.size > 0) await this.#openFor(jobs)
      },
      use: () => {
        this.#jobs = jobs
        this.#nextJobs = undefined
        if (this.#hasBegun) this.#runner?.use(jobs)
      },
      abandon: () => {
        this.#nextJobs = undefined
      },
    }
  }

  /** Adds a job: see `enqueue` in `svc.d.ts`. */
  readonly enqueue = async (name: string, data?: unknown, options?: EnqueueOptions): Promise<string> => {
    const names = new Set([...this.#jobs.keys(), ...(this.#nextJobs?.keys() ?? [])])
    const job = newJobOf(names, name, data, options, this.#options.now())
    return (await this.#opened()).enqueue(job)
  }

  /** Begins to run jobs. */
  begin(): void {
    this.#hasBegun = true
    this.#runner?.use(this.#jobs)
  }

  /** As `Runner.idle`. */
  async idle(): Promise<void> {
    await this.#runner?.idle()
  }

  /** As `Runner.wake`. */
  wake(): void {
    this.#runner?.wake()
  }

  /** As `Runner.stop`. */
  async stop(timeoutMs: number): Promise<void> {
    await this.#runner?.stop(timeoutMs)
  }

  /** Closes the store. Call it after `stop`. */
  async close(): Promise<void> {
    const store = await this.#store?.catch(() => undefined) // Then there is nothing to close.
    await store?.close()
  }

  /** What the runner of this process has done, and the number of jobs that it runs. */
  get counts(): RunCounts & { readonly running: number } {
    return { done: 0, failed: 0, dead: 0, ...this.#runner?.counts, running: this.#runner?.running ?? 0 }
  }

  // ---- for the panel, which opens no store that no job has needed ----

  /** Every name of the files and of the store, in order. */
  async names(): Promise<readonly JobName[]> {
    const store = await this.#store
    if (store === undefined) return []
    const counts = new Map((await store.counts()).map((each) => [each.name, each]))
    const names = [...new Set([...this.#jobs.keys(), ...counts.keys()])].sort()
    const none = { waiting: 0, running: 0, dead: 0, done: 0 }
    return Promise.all(names.map(async (name) => {
      const record = this.#jobs.get(name)?.record
      const next = record?.schedule === undefined ? null : await this.#nextOf(store, record)
      return { name, action: record?.action ?? '', ...none, ...counts.get(name), next }
    }))
  }

  async list(query: JobQuery): Promise<readonly ListedJob[]> {
    return (await this.#store)?.list(query) ?? []
  }

  /** As `JobStore.retry`. */
  async retry(id: string): Promise<boolean> {
    return (await this.#store)?.retry(id) ?? false
  }

  /** As `JobStore.discard`. */
  async discard(id: string): Promise<boolean> {
    return (await this.#store)?.discard(id) ?? false
  }

  /** Whether a job file has the name. */
  has(name: string): boolean {
    return this.#jobs.has(name)
  }

  async #nextOf(store: JobStore, { name, schedule }: JobRecord): Promise<number | null> {
    return schedule === undefined ? null : store.plan(name, schedule.spec, schedule.next(this.#options.now()))
  }

  /** Opens the store. If that fails and all jobs are optional, they are left out. */
  async #openFor(jobs: Map<string, LoadedJob>): Promise<void> {
    try {
      await this.#opened()
    } catch (error) {
      if (!this.#areOptional) throw error
      this.#options.log('server').warn(`runs without jobs, which are optional: ${reasonOf(error)}`)
      jobs.clear()
    }
  }

  #opened(): Promise<JobStore> {
    const { openStore, workers, log, now } = this.#options
    this.#store ??= openStore().then((store) => {
      if (workers > 0) this.#runner = new Runner({ store, workers, log: log('server'), now, random: Math.random })
      return store
    }).catch((error: unknown) => {
      this.#store = undefined // A later reload tries again.
      throw error
    })
    return this.#store
  }

  #run(resolved: ResolvedAction<unknown>): LoadedJob['run'] {
    return async (job, signal) => {
      const shared = { ...this.#options.shared(), enqueue: this.enqueue }
      return resolved.run(createJobContext(job, signal, this.#options.log('app'), shared))
    }
  }
}

function unreachable(): never {
  throw new Error('The action of a job is a module')
}
