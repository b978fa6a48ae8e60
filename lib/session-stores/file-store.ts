/**
 * Sessions in files: one file per session, in a folder used by one process. They survive a restart of the server.
 *
 * The name of a file is the SHA-256 of the id, so that a listing or a backup index reveals no session. A file is
 * replaced atomically, but not synced to disk: a power failure may lose the last seconds.
 *
 * The modification time of a file is the expiry of its session. So renewing a session only sets that time, and a sweep
 * reads no files. The change time, which the system sets, yields the session's time to live; `session-file.ts` uses it
 * when the clock is set.
 */
import { createHash } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { reasonOf } from '../base/reason.ts'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'
import { leftoverMs, replacedBy, replaceFile } from '../files/replace-file.ts'
import { FileExpiry, fromFileText, toFileText } from './session-file.ts'

/** The calls of `node:fs/promises` that the store makes; a test makes some of them fail. */
export interface SessionFiles {
  lstat(path: string): Promise<FileTimes & { isFile(): boolean }>
  readFile(path: string): Promise<Uint8Array>
  writeFile(path: string, text: string, options: { flag: 'wx'; mode: number }): Promise<void>
  utimes(path: string, atimeS: number, mtimeS: number): Promise<void>
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  mkdir(path: string, options: { recursive: true; mode: number }): Promise<unknown>
  opendir(path: string): Promise<AsyncIterable<{ readonly name: string }>>
}

/** Times of a file, in milliseconds since 1970. */
interface FileTimes {
  /** When its session expires. */
  readonly mtimeMs: number
  /** When it was written or renewed. */
  readonly ctimeMs: number
}

/** Where the sessions are, how they are checked, and what tests replace. */
interface FileStoreOptions {
  /** The folder's absolute path. Created on demand, mode 0700. No other process may use it. */
  readonly folder: string
  /** Returns the problem with the fields of a file; undefined if valid. A file with a problem counts as damaged. */
  readonly problemOf: (fields: Fields) => string | undefined
  /** Called once for each damaged file. */
  readonly onProblem: (message: string) => void
  /** Milliseconds since 1970; default: `Date.now`. */
  readonly now?: () => number
  /** A monotonic clock in milliseconds; default: `performance.now`. */
  readonly steadyNow?: () => number
  /** The file system; default: `node:fs/promises`. */
  readonly files?: SessionFiles
}

const sessionName = /^[0-9a-f]{64}\.json$/

/** A store in files. Accesses nothing before the first session. */
export class FileStore implements SessionStore {
  readonly #folder: string
  readonly #problemOf: (fields: Fields) => string | undefined
  readonly #onProblem: (message: string) => void
  readonly #now: () => number
  readonly #files: SessionFiles
  readonly #expiry: FileExpiry
  /** The last change started on a file, by its name; never rejects. */
  readonly #turns = new Map<string, Promise<void>>()
  /** The reported damaged files. */
  readonly #reported = new Set<string>()
  #damaged = 0
  /** As of the last sweep; undefined before the first. */
  #stored: number | undefined
  #sweeping: Promise<number> | undefined = undefined
  #closed = false

  constructor(options: FileStoreOptions) {
    const { folder, problemOf, onProblem, now = Date.now, steadyNow = () => performance.now(), files = fs } = options
    this.#folder = folder
    this.#problemOf = problemOf
    this.#onProblem = onProblem
    this.#now = now
    this.#files = files
    this.#expiry = new FileExpiry(now, steadyNow)
  }

  get counts(): StoreCounts {
    return { evicted: 0, damaged: this.#damaged }
  }

  get stored(): number | undefined {
    return this.#stored
  }

  read(id: string): Promise<StoredSession | undefined> {
    return this.#explained('read a session in', () => this.#load(nameOf(id)))
  }

  create(id: string, fields: Fields, ttlMs: number): Promise<void> {
    const name = nameOf(id)
    return this.#change(name, 'save a session in', () => this.#write(name, fields, ttlMs))
  }

  merge(id: string, changes: FieldChanges, ttlMs: number | undefined): Promise<boolean> {
    const name = nameOf(id)
    return this.#change(name, 'save a session in', async () => {
      if (ttlMs !== undefined && changes.set.size === 0 && changes.removed.size === 0) return this.#renew(name, ttlMs)
      const found = await this.#load(name)
      if (found === undefined) return false
      await this.#write(name, applyChanges(found.fields, changes), ttlMs ?? found.remainingMs)
      return true
    })
  }

  /**
   * The step is done when the old file is removed. If the process is killed just before, the new file stays until it
   * expires, under an id that no client has, and the old id is unchanged.
   */
  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    const name = nameOf(id)
    const newName = nameOf(newId)
    return this.#change(name, 'save a session in', async () => {
      const found = await this.#load(name)
      if (found === undefined) return false
      await this.#write(newName, applyChanges(found.fields, changes), ttlMs)
      try {
        if (await this.#remove(name)) return true
      } catch (error) {
        await this.#remove(newName).catch(() => {}) // The first failure is the one to report.
        throw error
      }
      await this.#remove(newName)
      return false
    })
  }

  destroy(id: string): Promise<void> {
    const name = nameOf(id)
    return this.#change(name, 'remove a session from', async () => {
      await this.#remove(name)
    })
  }

  sweep(): Promise<number> {
    const sweep = (): Promise<number> => this.#sweep().finally(() => (this.#sweeping = undefined))
    return (this.#sweeping ??= this.#explained('sweep the sessions in', sweep))
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#sweeping?.catch(() => {}) // The caller of sweep() gets the failure.
    await Promise.all(this.#turns.values())
  }

  #change<T>(name: string, what: string, work: () => Promise<T>): Promise<T> {
    return this.#explained(what, () => this.#inTurn(name, work))
  }

  /** Changes a file after all earlier changes to it. */
  #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(name)
    const outcome = before === undefined ? work() : before.then(work)
    const done = (): void => {
      if (this.#turns.get(name) === turn) this.#turns.delete(name)
    }
    const turn = outcome.then(done, done)
    this.#turns.set(name, turn)
    return outcome
  }

  /** Adds the folder and advice to the message of a failure. */
  async #explained<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const reason = reasonOf(error)
      const advice = 'the user that the server runs as must be able to write there, and the disk must have room'
      throw new Error(`Cannot ${what} ${this.#folder}: ${reason}; ${advice}`, { cause: error })
    }
  }

  async #load(name: string): Promise<StoredSession | undefined> {
    const path = join(this.#folder, name)
    const stats = await ifExists(this.#files.lstat(path))
    if (stats === undefined || this.#isExpired(name, stats)) return undefined
    const remainingMs = stats.mtimeMs - this.#now()
    if (!stats.isFile()) return this.#reportDamaged(name, 'it is not a regular file')
    const bytes = await ifExists(this.#files.readFile(path))
    if (bytes === undefined) return undefined
    const fields = fromFileText(bytes)
    if (typeof fields === 'string') return this.#reportDamaged(name, fields)
    const problem = this.#problemOf(fields)
    return problem === undefined ? { fields, remainingMs } : this.#reportDamaged(name, problem)
  }

  #reportDamaged(name: string, problem: string): undefined {
    if (this.#reported.has(name)) return
    this.#reported.add(name)
    this.#damaged += 1
    this.#onProblem(`the session file ${join(this.#folder, name)} is damaged and was ignored: ${problem}`)
  }

  async #write(name: string, fields: Fields, ttlMs: number): Promise<void> {
    const write = async (temporary: string): Promise<void> => {
      await this.#writeNew(temporary, toFileText(fields))
      await this.#setExpiry(temporary, ttlMs)
    }
    await replaceFile(join(this.#folder, name), write, this.#files)
    this.#expiry.forget(name)
  }

  async #writeNew(path: string, text: string): Promise<void> {
    const options = { flag: 'wx', mode: 0o600 } as const
    try {
      await this.#files.writeFile(path, text, options)
    } catch (error) {
      if (!isMissing(error)) throw error
      await this.#files.mkdir(this.#folder, { recursive: true, mode: 0o700 })
      await this.#files.writeFile(path, text, options)
    }
  }

  async #renew(name: string, ttlMs: number): Promise<boolean> {
    const path = join(this.#folder, name)
    const stats = await ifExists(this.#files.lstat(path))
    if (stats === undefined || !stats.isFile() || this.#isExpired(name, stats)) return false
    await this.#setExpiry(path, ttlMs)
    this.#expiry.forget(name)
    return true
  }

  #isExpired(name: string, { mtimeMs, ctimeMs }: FileTimes): boolean {
    return this.#expiry.isOver(name, ctimeMs, mtimeMs)
  }

  #setExpiry(path: string, ttlMs: number): Promise<void> {
    const now = this.#now()
    return this.#files.utimes(path, now / 1000, (now + ttlMs) / 1000)
  }

  /** Removes a file. Returns false if it does not exist. */
  async #remove(name: string): Promise<boolean> {
    const removed = await ifExists(this.#files.unlink(join(this.#folder, name)).then(() => true))
    this.#reported.delete(name)
    this.#expiry.forget(name)
    return removed === true
  }

  /** Visits one file at a time, so that requests are served in between. */
  async #sweep(): Promise<number> {
    const entries = await ifExists(this.#files.opendir(this.#folder))
    if (entries === undefined) return 0
    let [found, removed] = [0, 0]
    for await (const { name } of entries) {
      if (this.#closed) return removed
      if (sessionName.test(name)) {
        found += 1
        removed += await this.#removeIf(name, (times) => this.#isExpired(name, times))
      } else if (sessionName.test(replacedBy(name) ?? '')) {
        await this.#removeIf(name, ({ ctimeMs }) => this.#expiry.isOver(name, ctimeMs, ctimeMs + leftoverMs))
      }
    }
    this.#stored = found - removed
    return removed
  }

  /** Removes a file if it has expired, after all earlier changes to it. Returns the number of files removed. */
  #removeIf(name: string, isOver: (times: FileTimes) => boolean): Promise<number> {
    return this.#inTurn(name, async () => {
      const stats = await ifExists(this.#files.lstat(join(this.#folder, name)))
      if (stats === undefined || !stats.isFile() || !isOver(stats)) return 0
      return (await this.#remove(name)) ? 1 : 0
    })
  }
}

function nameOf(id: string): string {
  return `${createHash('sha256').update(id).digest('hex')}.json`
}

/** Returns the result of a file operation; undefined if the file or its folder does not exist. */
async function ifExists<T>(outcome: Promise<T>): Promise<T | undefined> {
  try {
    return await outcome
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT' // node:fs throws Errors
}
