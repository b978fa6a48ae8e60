/**
 * The database of this process in `paths.data`, opened when something first needs it: jobs, or sessions of the store
 * `data`. A server that needs none loads no code for it.
 */
import { resolve } from 'node:path'
import { loadRoom } from '../config/load-room.ts'
import { errorOfValues, type LoadedConfig } from '../config/load.ts'
import type { ConfigKey } from '../config/table.ts'
import type { Database } from '../data/database.ts'
import type { Broker } from '../events/broker.ts'
import { LaterBroker } from '../events/later-broker.ts'
import type { JobStore } from '../jobs/job-store.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { problemOfFields } from '../session/fields.ts'
import { noCounts, type SessionStore, type StoreSettings } from '../session/store.ts'
import { openLocalStore } from '../session-stores/local-store.ts'

/** The keys that may need the database. */
type Needing = 'paths.jobs' | 'paths.data' | 'setup'

/** The database. */
export class LocalData {
  readonly #loaded: LoadedConfig
  readonly #log: ModuleLogger
  #database: Promise<Database> | undefined
  /** Whether the session store `data` is in use. */
  #hasSessions = false

  /** @param log of module `server` */
  constructor(loaded: LoadedConfig, log: ModuleLogger) {
    this.#loaded = loaded
    this.#log = log
  }

  /** Whether sessions are in the database, or anything has opened it. */
  get isUsed(): boolean {
    return this.#hasSessions || this.#database !== undefined
  }

  /** Opens the database if sessions are in it. Rejects as any opening so far does. */
  async ready(): Promise<void> {
    await (this.#hasSessions ? this.#open('setup') : this.#database)
  }

  /** Rejects with ConfigError when sessions are in the database and this Node has no SQLite. Opens nothing. */
  async check(): Promise<void> {
    if (this.#hasSessions) await requireSqlite(this.#loaded, 'setup')
  }

  /**
   * Opens the job store.
   * @param now milliseconds since 1970
   * @throws ConfigError, DataError, MissingRoomError, as a rejection
   */
  readonly jobs = async (now: () => number): Promise<JobStore> => {
    const database = await this.#open('paths.jobs')
    const { openJobs } = await loadRoom('paths.jobs', () => import('../data/sqlite-jobs.ts'))
    return openJobs(database, this.#log, now)
  }

  /**
   * Opens a session store on this machine. The functions of the store `data` reject while the database cannot be used.
   * @param onProblem called with messages for the operator
   */
  readonly openSessions = (settings: StoreSettings, onProblem: (message: string) => void): SessionStore => {
    return settings.store === 'data' ? this.#openSessions(onProblem) : openLocalStore(settings, onProblem)
  }

  /** Returns the broker of durable events, which opens the database when it is first used. */
  openBroker(): Broker {
    return new LaterBroker(async () => {
      const database = await this.#open('paths.data')
      const { SqliteBroker } = await loadRoom('durable: true', () => import('../data/sqlite-broker.ts'))
      const broker = new SqliteBroker({ database })
      await broker.open()
      return broker
    })
  }

  /** Closes the database. Call it when nothing uses it. */
  async close(): Promise<void> {
    const database = await this.#database?.catch(() => undefined) // The start has failed with its error.
    database?.close()
  }

  #openSessions(onProblem: (message: string) => void): SessionStore {
    this.#hasSessions = true
    let store: SessionStore | undefined
    const opened = async (): Promise<SessionStore> => {
      if (store !== undefined) return store
      const database = await this.#open('setup')
      const { SqliteSessions } = await loadRoom('setup.session.store', () => import('../data/sqlite-sessions.ts'))
      return (store ??= new SqliteSessions({ database, problemOf: problemOfFields, onProblem }))
    }
    return {
      read: async (id) => (await opened()).read(id),
      create: async (...args) => (await opened()).create(...args),
      merge: async (...args) => (await opened()).merge(...args),
      rename: async (...args) => (await opened()).rename(...args),
      destroy: async (id) => (await opened()).destroy(id),
      sweep: async () => (await opened()).sweep(),
      close: () => {},
      get counts() {
        return store?.counts ?? noCounts
      },
      get stored() {
        return store?.stored
      },
    }
  }

  #open(neededBy: Needing): Promise<Database> {
    this.#database ??= this.#openFile(neededBy).catch((error: unknown) => {
      this.#database = undefined // A later reload tries again.
      throw error
    })
    return this.#database
  }

  async #openFile(neededBy: Needing): Promise<Database> {
    const { config, folder } = this.#loaded
    await requireSqlite(this.#loaded, neededBy)
    const { Database } = await loadRoom(neededBy, () => import('../data/database.ts'))
    return Database.open({ folder: resolve(folder, config['paths.data']), sync: config['data.sync'], log: this.#log })
  }
}

/**
 * Rejects with ConfigError when this Node has no SQLite.
 * @param neededBy the key of the configuration that needs it
 */
export async function requireSqlite(loaded: LoadedConfig, neededBy: ConfigKey): Promise<void> {
  const { DataError, loadSqlite } = await loadRoom(neededBy, () => import('../data/sqlite.ts'))
  try {
    loadSqlite()
  } catch (error) {
    if (!(error instanceof DataError)) throw error
    throw errorOfValues(loaded, [{ key: neededBy, text: `${neededBy}: ${error.message}` }], error)
  }
}
