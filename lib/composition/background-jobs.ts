/**
 * The jobs of a server, whose rooms are loaded when `paths.jobs` has a job file: a server without jobs loads no code
 * for them and opens no database. With `shared.url` the jobs are in the shared engine.
 */
import { readdirSync } from 'node:fs'
import { resolve } from 'node:path'
import type { EnqueueOptions } from 'svc'
import type { PreparedJobs } from '../application/application.ts'
import { loadRoom } from '../config/load-room.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { JobStore } from '../jobs/job-store.ts'
import type { SharedMembers } from '../jobs/job-context.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Modules } from '../modules/modules.ts'
import { requireSqlite } from './local-data.ts'

interface BackgroundJobsOptions {
  readonly loaded: LoadedConfig
  readonly modules: Pick<Modules, 'load'>
  readonly log: (module: string) => ModuleLogger
  /** Opens the store. */
  readonly openStore: () => Promise<JobStore>
  /** The members of the context that all jobs share, but `enqueue`. */
  readonly shared: () => Omit<SharedMembers, 'enqueue'>
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const noJobs: PreparedJobs = {
  problems: [],
  broken: [],
  incomplete: [],
  notes: [],
  open: async () => {},
  use: () => {},
  abandon: () => {},
}

const noCounts: Jobs['counts'] = { done: 0, failed: 0, dead: 0, running: 0 }

/** The jobs. */
export class BackgroundJobs {
  readonly #options: BackgroundJobsOptions
  readonly #folder: string
  #jobs: Jobs | undefined
  #hasBegun = false

  constructor(options: BackgroundJobsOptions) {
    this.#options = options
    this.#folder = resolve(options.loaded.folder, options.loaded.config['paths.jobs'])
  }

  /** The jobs, once the server has had a job file. */
  get current(): Jobs | undefined {
    return this.#jobs
  }

  /** The tries since the start, and the number of jobs that run. */
  get counts(): Jobs['counts'] {
    return this.#jobs?.counts ?? noCounts
  }

  /** For `Application`. Rejects with MissingRoomError. */
  readonly prepare = async (): Promise<PreparedJobs> => {
    if (this.#jobs === undefined && !hasJobFiles(this.#folder)) return noJobs
    this.#jobs ??= await this.#load()
    return this.#jobs.prepare()
  }

  /** As `ctx.enqueue`. */
  readonly enqueue = async (name: string, data?: unknown, options?: EnqueueOptions): Promise<string> => {
    if (this.#jobs !== undefined) return this.#jobs.enqueue(name, data, options)
    throw new Error(`Cannot enqueue ${JSON.stringify(name)}: there are no job files in ${this.#folder}`)
  }

  /** Begins to run jobs, those of later job files too. */
  begin(): void {
    this.#hasBegun = true
    this.#jobs?.begin()
  }

  async #load(): Promise<Jobs> {
    const { loaded, openStore, ...others } = this.#options
    const { config, folder } = loaded
    const { Jobs } = await loadRoom('paths.jobs', () => import('../jobs/jobs.ts'))
    const jobs = new Jobs({
      ...others,
      folder: this.#folder,
      root: resolve(folder, config['paths.root']),
      workers: config['pool_jobs.workers'],
      openStore: async () => {
        await requireStore(loaded)
        return openStore()
      },
    })
    if (this.#hasBegun) jobs.begin()
    return jobs
  }
}

/** Rejects with ConfigError when the jobs of this configuration need SQLite and this Node has none. */
export async function requireStore(loaded: LoadedConfig): Promise<void> {
  const isShared = loaded.config['shared.url'] !== '' // Then they are in the engine.
  if (!isShared) await requireSqlite(loaded, 'paths.jobs')
}

function hasJobFiles(folder: string): boolean {
  try {
    return readdirSync(folder).some((name) => name.endsWith('.json') && !name.startsWith('.'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT' // Reading the files reports any other problem.
  }
}
