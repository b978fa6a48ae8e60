/**
 * The database of a server: one SQLite file with jobs, durable events and sessions.
 *
 * A transaction costs more than the writes in it, so the writes of one turn of the event loop share one. Everything is
 * synchronous except that `write` runs its work at the end of the turn: reads never see half of a transaction.
 */
import { performance } from 'node:perf_hooks'
import { openFile, type DatabaseOptions, type OpenedFile } from './open-file.ts'
import { DataError, isOfFile, toDataError, type Statement } from './sqlite.ts'

/** A write that waits for its transaction. */
interface Waiting {
  /** Runs the work. Returns a function that resolves its promise. */
  run(): () => void
  reject(reason: unknown): void
}

/** How long a transaction takes writes. The rest waits, so that requests get their turn. */
const maxGroupMs = 10

/** An open database. One server uses it at a time. */
export class Database {
  /** The absolute path of the file. */
  readonly path: string
  readonly #file: OpenedFile
  readonly #log: DatabaseOptions['log']
  readonly #statements = new Map<string, Statement>()
  readonly #rollbackListeners: (() => void)[] = []
  readonly #waiting: Waiting[] = []
  #turn: NodeJS.Immediate | undefined
  #isFailing = false
  #closed = false

  /**
   * Opens or creates the file, and brings its tables up to date. A damaged file is set aside and logged.
   * @throws DataError if this Node has no SQLite, another server uses the file, a newer version wrote it, or the file
   * or its folder cannot be used
   */
  static open(options: DatabaseOptions): Database {
    return new Database(openFile(options), options.log)
  }

  private constructor(file: OpenedFile, log: DatabaseOptions['log']) {
    this.path = file.path
    this.#file = file
    this.#log = log
  }

  /**
   * Returns the prepared statement of a text, the same one each time.
   * @param sql a constant: each text stays in memory
   * @throws DataError once the database is closed; an error of SQLite if the text is wrong
   */
  prepare(sql: string): Statement {
    if (this.#closed) throw this.#closedError()
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#file.connection.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /**
   * Runs a write in the transaction of this turn of the event loop, after those before it. Resolves with its result
   * once that is committed. Rejects with what the work throws, which undoes this write alone. Rejects with DataError if
   * the database is closed, or the transaction fails: then all its writes and all waiting ones reject.
   * @param work synchronous; begins and ends no transaction
   */
  write<R>(work: () => R): Promise<R> {
    if (this.#closed) return Promise.reject(this.#closedError())
    return new Promise((resolve, reject) => {
      const run = (): (() => void) => {
        const result = work()
        return () => resolve(result)
      }
      this.#waiting.push({ run, reject })
      this.#turn ??= setImmediate(() => this.#runTurn())
    })
  }

  /**
   * Calls a function after each transaction that was rolled back, before the callers of its writes learn of it: copies
   * of the tables in memory must be read again. It must not throw.
   */
  onRollback(listener: () => void): void {
    this.#rollbackListeners.push(listener)
  }

  /** Runs the waiting writes, moves the write-ahead log into the file, and frees the lock. Never throws. */
  close(): void {
    if (this.#closed) return
    clearImmediate(this.#turn)
    while (this.#waiting.length > 0) this.#runGroup()
    this.#closed = true
    const { connection, lock } = this.#file
    try {
      connection.exec('PRAGMA wal_checkpoint(PASSIVE)')
    } catch (error) {
      const { message } = toDataError(`Cannot move the write-ahead log of ${this.path} into it`, error)
      this.#log.warn(`${message}. Nothing is lost: the next start reads that log`)
    }
    connection.close()
    lock.close()
  }

  #runTurn(): void {
    try {
      this.#runGroup()
    } finally {
      this.#turn = this.#waiting.length > 0 ? setImmediate(() => this.#runTurn()) : undefined
    }
  }

  /** Runs the waiting writes in one transaction, as far as the time allows. */
  #runGroup(): void {
    const done: (() => void)[] = []
    const end = performance.now() + maxGroupMs
    let taken = 0
    try {
      this.prepare('BEGIN IMMEDIATE').run()
      do {
        const next = this.#waiting[taken]
        if (next === undefined) break
        taken += 1
        const resolve = this.#runOne(next)
        if (resolve !== undefined) done.push(resolve)
      } while (performance.now() < end)
      this.prepare('COMMIT').run()
    } catch (error) {
      return this.#fail(error)
    }
    this.#waiting.splice(0, taken)
    if (this.#isFailing) this.#log.info(`${this.path} can be written again`)
    this.#isFailing = false
    for (const resolve of done) resolve()
  }

  /**
   * Runs a write in a savepoint. Returns what resolves it; undefined if it threw and was undone.
   * @throws what makes the whole transaction fail: an error of the file, or one at which SQLite ended the transaction
   */
  #runOne({ run, reject }: Waiting): (() => void) | undefined {
    this.prepare('SAVEPOINT one').run()
    let resolve: (() => void) | undefined
    try {
      resolve = run()
    } catch (error) {
      if (isOfFile(error) || !this.#undoesOne()) throw error
      reject(error)
    }
    this.prepare('RELEASE one').run()
    return resolve
  }

  /** Undoes a write. Returns false if its savepoint is gone, since SQLite has ended the transaction by itself. */
  #undoesOne(): boolean {
    try {
      this.prepare('ROLLBACK TO one').run()
      return true
    } catch {
      return false
    }
  }

  /** Ends the transaction, and rejects all that wait: what follows a lost write may depend on it. */
  #fail(thrown: unknown): void {
    try {
      this.prepare('ROLLBACK').run()
    } catch {
      // It did not begin, or SQLite has ended it.
    }
    const error = toDataError(`Cannot write ${this.path}`, thrown)
    if (!this.#isFailing) this.#log.error(error.message)
    this.#isFailing = true
    // The callers run in later microtasks, so after the listeners.
    for (const { reject } of this.#waiting.splice(0)) reject(error)
    for (const listener of this.#rollbackListeners) listener()
  }

  #closedError(): DataError {
    return new DataError(`Cannot use ${this.path}: it is closed`)
  }
}
