/**
 * Sessions in files: one file a session, in a folder of one process. They live on when the server is started anew.
 *
 * A file's name is the SHA-256 of the id, so that a listing or a backup's index gives no session away. It is written
 * beside its place and renamed into it, so it is whole at any moment, also when the process is killed. It is not forced
 * to disk: a power cut may cost the last seconds.
 *
 * Surprise: the modification time of a file is the time at which the session expires. To renew a session is to set that
 * time, and a sweep reads no file. The system's own note of when that was, the change time, tells how long the session
 * was to live; `file-expiry.ts` says what becomes of it when the clock is set.
 */
import { createHash, randomBytes } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { reasonOf } from '../base/reason.ts'
import { FileExpiry } from './file-expiry.ts'
import { fromFileText, toFileText } from './file-text.ts'
import { applyChanges, type FieldChanges, type Fields } from '../session/store.ts'
import type { SessionStore, StoreCounts, StoredSession } from '../session/store.ts'

/** What the store needs of a file system, with the meanings and errors of `node:fs/promises`. */
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
export interface FileTimes {
  /** When its session expires. */
  readonly mtimeMs: number
  /** When it was written or renewed. */
  readonly ctimeMs: number
}

export interface FileStoreOptions {
  /** The folder's absolute path. It is made, mode 0700, when it is first needed. No other process may use it. */
  readonly folder: string
  /** What is wrong with the fields that a file holds; undefined for nothing. Such a file counts as damaged. */
  readonly problemOf: (fields: Fields) => string | undefined
  /** Told of each damaged file, once. */
  readonly onProblem: (message: string) => void
  /** The time in milliseconds since 1970; `Date.now` unless given. */
  readonly now?: () => number
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly steadyNow?: () => number
  /** The file system; `node:fs/promises` unless given. */
  readonly files?: SessionFiles
}

const sessionName = /^[0-9a-f]{64}\.json$/
const temporaryName = /^[0-9a-f]{64}\.json\.[0-9a-f]{12}\.tmp$/
/** Milliseconds after which a temporary file is nobody's any more. */
const leftoverMs = 3_600_000

/** Makes a store. Nothing is read or made before a session is. */
export function createFileStore(options: FileStoreOptions): SessionStore {
  return new FileStore(options)
}

class FileStore implements SessionStore {
  readonly #folder: string
  readonly #problemOf: (fields: Fields) => string | undefined
  readonly #onProblem: (message: string) => void
  readonly #now: () => number
  readonly #files: SessionFiles
  readonly #expiry: FileExpiry
  /** The end of what has been begun on a file, by its name; it never rejects. */
  readonly #turns = new Map<string, Promise<void>>()
  /** The damaged files that were told of. */
  readonly #told = new Set<string>()
  #damaged = 0
  #sweeping: Promise<number> | undefined = undefined
  #closed = false

  constructor(options: FileStoreOptions) {
    const { folder, problemOf, onProblem, now = Date.now, steadyNow = () => performance.now(), files = fs } = options
    this.#folder = folder
    this.#problemOf = problemOf
    this.#onProblem = onProblem
    this.#now = now
    this.#files = files
    this.#expiry = new FileExpiry({ now, steadyNow })
  }

  get counts(): StoreCounts {
    return { evicted: 0, damaged: this.#damaged }
  }

  read(id: string): Promise<StoredSession | undefined> {
    return this.#telling('read a session in', () => this.#load(nameOf(id)))
  }

  create(id: string, fields: Fields, ttlMs: number): Promise<void> {
    const name = nameOf(id)
    return this.#step(name, 'save a session in', () => this.#write(name, fields, ttlMs))
  }

  merge(id: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    const name = nameOf(id)
    return this.#step(name, 'save a session in', async () => {
      if (changes.set.size === 0 && changes.removed.size === 0) return this.#renew(name, ttlMs)
      const found = await this.#load(name)
      if (found === undefined) return false
      await this.#write(name, applyChanges(found.fields, changes), ttlMs)
      return true
    })
  }

  /**
   * The step is done when the old file goes. Killed just before, the new file stays behind under an id that nobody was
   * told, until it expires, and the old id has what it had before the request: nothing of what a sign-in added.
   */
  rename(id: string, newId: string, changes: FieldChanges, ttlMs: number): Promise<boolean> {
    const name = nameOf(id)
    const newName = nameOf(newId)
    return this.#step(name, 'save a session in', async () => {
      const found = await this.#load(name)
      if (found === undefined) return false
      await this.#write(newName, applyChanges(found.fields, changes), ttlMs)
      try {
        if (await this.#remove(name)) return true
      } catch (error) {
        await this.#remove(newName).catch(() => {}) // The first failure is the one to tell.
        throw error
      }
      await this.#remove(newName)
      return false
    })
  }

  destroy(id: string): Promise<void> {
    const name = nameOf(id)
    return this.#step(name, 'remove a session from', async () => {
      await this.#remove(name)
    })
  }

  sweep(): Promise<number> {
    const sweep = (): Promise<number> => this.#sweep().finally(() => (this.#sweeping = undefined))
    return (this.#sweeping ??= this.#telling('sweep the sessions in', sweep))
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#sweeping?.catch(() => {}) // Told to whoever asked for it.
    await Promise.all(this.#turns.values())
  }

  /** A step of a session: in its turn, and with its failure told. */
  #step<T>(name: string, what: string, work: () => Promise<T>): Promise<T> {
    return this.#telling(what, () => this.#inTurn(name, work))
  }

  /** Does what changes a file after all that was begun on it before. */
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

  /** Does something whose failure is told with the folder's name. */
  async #telling<T>(what: string, work: () => Promise<T>): Promise<T> {
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
    const stats = await ifThere(this.#files.lstat(path))
    if (stats === undefined) return undefined
    if (this.#isExpired(name, stats)) return undefined
    const remainingMs = stats.mtimeMs - this.#now()
    if (!stats.isFile()) return this.#tellDamaged(name, 'it is no regular file')
    const bytes = await ifThere(this.#files.readFile(path))
    if (bytes === undefined) return undefined
    const fields = fromFileText(bytes)
    if (typeof fields === 'string') return this.#tellDamaged(name, fields)
    const problem = this.#problemOf(fields)
    return problem === undefined ? { fields, remainingMs } : this.#tellDamaged(name, problem)
  }

  #tellDamaged(name: string, problem: string): undefined {
    if (this.#told.has(name)) return
    this.#told.add(name)
    this.#damaged += 1
    this.#onProblem(`the session file ${join(this.#folder, name)} is damaged and was ignored: ${problem}`)
  }

  async #write(name: string, fields: Fields, ttlMs: number): Promise<void> {
    const path = join(this.#folder, name)
    const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
    try {
      await this.#writeNew(temporary, toFileText(fields))
      await this.#setExpiry(temporary, ttlMs)
      await this.#files.rename(temporary, path)
      this.#expiry.forget(name)
    } catch (error) {
      await this.#files.unlink(temporary).catch(() => {}) // It may not be there. A sweep takes it else.
      throw error
    }
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
    const stats = await ifThere(this.#files.lstat(path))
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

  /** Removes a file. False when it is not there. */
  async #remove(name: string): Promise<boolean> {
    const gone = await ifThere(this.#files.unlink(join(this.#folder, name)).then(() => true))
    this.#told.delete(name)
    this.#expiry.forget(name)
    return gone === true
  }

  /** Goes through the folder one file after the other, so that requests get their turns in between. */
  async #sweep(): Promise<number> {
    const entries = await ifThere(this.#files.opendir(this.#folder))
    if (entries === undefined) return 0
    let removed = 0
    for await (const { name } of entries) {
      if (this.#closed) break
      if (sessionName.test(name)) removed += await this.#removeIf(name, (times) => this.#isExpired(name, times))
      else if (temporaryName.test(name)) {
        await this.#removeIf(name, ({ ctimeMs }) => this.#expiry.isOver(name, ctimeMs, ctimeMs + leftoverMs))
      }
    }
    return removed
  }

  /** Removes a file whose time is over, after what was begun on it. Returns how many files that were. */
  #removeIf(name: string, isOver: (times: FileTimes) => boolean): Promise<number> {
    return this.#inTurn(name, async () => {
      const stats = await ifThere(this.#files.lstat(join(this.#folder, name)))
      if (stats === undefined || !stats.isFile() || !isOver(stats)) return 0
      return (await this.#remove(name)) ? 1 : 0
    })
  }
}

function nameOf(id: string): string {
  return `${createHash('sha256').update(id).digest('hex')}.json`
}

/** What a promise of a file operation gives; undefined when the file or its folder is not there. */
async function ifThere<T>(outcome: Promise<T>): Promise<T | undefined> {
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
