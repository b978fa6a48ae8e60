/**
 * The files of the logs: one that only grows, and one that is rotated when it reaches its size.
 *
 * A missing file is created with mode 0640, its folder with 0750. If the last line has no line end (after a crash or a
 * full disk), one is added when the file is opened, so that the next line does not run into it.
 */
import * as fs from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import type { ConsolePort } from './console.ts'
import { compactTime } from './line.ts'

/** Where an `Appender` writes. Its methods throw the errors of the file system. */
export interface LogTarget {
  /** The path of the file, for messages. */
  readonly path: string
  /** The bytes that fit until the file is rotated; Infinity if it is not. */
  readonly room: number
  /** Opens the target unless it is open. */
  open(): void
  /** Opens the file at the path and closes the old one. If it throws, the old one stays open. */
  reopen(): void
  /** Writes the bytes from `offset` on with one system call. Returns how many were written, at least 1. */
  write(bytes: Uint8Array, offset: number): number
  /** Whether the path still leads to the open file. */
  isAtPath(): boolean
  /** Called after each batch of whole lines, when the target may rotate the file. Never throws. */
  batchWritten(): void
  /** Closes the target. It may be opened again. Never throws. */
  close(): void
}

/** How a log reports its own events, and the clock that it uses. */
export interface LogReports {
  /** Writes a line to the general log, module `logger`. */
  readonly report: (level: 'info' | 'warn', message: string) => void
  /** Prints a line, passed without its line end, on standard error. */
  readonly alert: (message: string) => void
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The calls of `node:fs` that the logs use. A test passes a file system whose disk is full. */
export interface FileSystem {
  openSync(path: string, flags: number, mode: number): number
  closeSync(fd: number): void
  fstatSync(fd: number): FileFacts
  statSync(path: string): FileFacts
  readSync(fd: number, into: Uint8Array, offset: number, length: number, position: number): number
  writeSync(fd: number, bytes: Uint8Array, offset: number, length: number): number
  existsSync(path: string): boolean
  renameSync(from: string, to: string): void
  unlinkSync(path: string): void
  readdirSync(path: string): string[]
  mkdirSync(path: string, options: { recursive: true; mode: number }): unknown
}

/** The parts of a log that workers and tests replace. */
export interface LogParts {
  /** The destination of lines, instead of the file and the console. */
  readonly target?: LogTarget | undefined
  /** Milliseconds since 1970; `Date.now` by default. */
  readonly now?: () => number
  /** Where outages, and the lines of the general log, are printed; the process's own console by default. */
  readonly consolePort?: ConsolePort
  /** The file system; `node:fs` by default. */
  readonly fileSystem?: FileSystem
}

type FileFacts = Pick<fs.Stats, 'size' | 'dev' | 'ino' | 'mtimeMs' | 'isFile'>

/** Milliseconds between two attempts of a failed disk operation. */
export const retryMs = 1000

/** To read and append, created if missing. A pipe without a reader refuses bytes instead of blocking. */
const openFlags = fs.constants.O_RDWR | fs.constants.O_APPEND | fs.constants.O_CREAT | fs.constants.O_NONBLOCK
const fileMode = 0o640
const folderMode = 0o750
const lineFeed = 10
/** The name of a rotated file, with its number. */
export const rotatedName = /^svc_\d{14}_(\d{6}|[1-9]\d{6,14})\.log$/

/** Whether the last attempt was less than a second ago; false if the clock was set back. */
export function isTooEarly(nowMs: number, lastTryMs: number): boolean {
  const passedMs = nowMs - lastTryMs
  return passedMs >= 0 && passedMs < retryMs
}

/** The code of a system error (`ENOSPC`), or undefined for any other value. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}

/** A file that only grows. */
export class LogFile implements LogTarget {
  readonly path: string
  readonly #fileSystem: FileSystem
  #fd: number | undefined
  #size = 0
  #regular = true

  /** @param path the file; `open()` opens it */
  constructor(path: string, fileSystem: FileSystem = fs) {
    this.path = path
    this.#fileSystem = fileSystem
  }

  get room(): number {
    return Number.POSITIVE_INFINITY
  }

  /** The size in bytes as far as this process knows; 0 for anything but a regular file, such as a pipe. */
  get size(): number {
    return this.#regular ? this.#size : 0
  }

  open(): void {
    if (this.#fd === undefined) this.#fd = this.#openFile()
  }

  reopen(): void {
    const fd = this.#openFile()
    this.close()
    this.#fd = fd
  }

  write(bytes: Uint8Array, offset: number): number {
    if (this.#fd === undefined) throw new Error(`Cannot write to ${this.path}: it is not open`)
    const length = bytes.length - offset
    const count = this.#fileSystem.writeSync(this.#fd, bytes, offset, length)
    if (count === 0) throw new Error(`Cannot write to ${this.path}: the system accepted none of ${length} bytes`)
    this.#size += count
    return count
  }

  batchWritten(): void {}

  /**
   * Reads what other programs have appended since the last call of this, `open` or `write`. Ends their last line.
   * @throws Error of the file system, or RangeError for more than 2 GiB
   */
  readAppended(): Buffer {
    const fd = this.#fd
    const size = fd === undefined || !this.#regular ? this.#size : this.#fileSystem.fstatSync(fd).size
    const bytes = Buffer.alloc(Math.max(0, size - this.#size))
    if (fd === undefined || size === this.#size) return bytes
    const count = bytes.length > 0 ? this.#fileSystem.readSync(fd, bytes, 0, bytes.length, this.#size) : 0
    this.#endLastLine(fd, size)
    return bytes.subarray(0, count)
  }

  close(): void {
    const fd = this.#fd
    if (fd === undefined) return
    this.#fd = undefined
    try {
      this.#fileSystem.closeSync(fd)
    } catch {
      // The descriptor is closed all the same (close(2)), and write() has returned what was written.
    }
  }

  /** Whether the path still leads to the open file; false if there is no file. */
  isAtPath(): boolean {
    if (this.#fd === undefined) return false
    try {
      const here = this.#fileSystem.fstatSync(this.#fd)
      const there = this.#fileSystem.statSync(this.path)
      return here.ino === there.ino && here.dev === there.dev
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return false
      throw error
    }
  }

  #openFile(): number {
    const fd = this.#openOrMake()
    try {
      const facts = this.#fileSystem.fstatSync(fd)
      this.#endLastLine(fd, facts.isFile() ? facts.size : 0)
      this.#regular = facts.isFile()
      return fd
    } catch (error) {
      this.#fileSystem.closeSync(fd)
      throw error
    }
  }

  #openOrMake(): number {
    try {
      return this.#fileSystem.openSync(this.path, openFlags, fileMode)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
      this.#fileSystem.mkdirSync(dirname(this.path), { recursive: true, mode: folderMode })
      return this.#fileSystem.openSync(this.path, openFlags, fileMode)
    }
  }

  #endLastLine(fd: number, size: number): void {
    const last = new Uint8Array(1)
    const torn = size > 0 && this.#fileSystem.readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== lineFeed
    if (torn) this.#fileSystem.writeSync(fd, Uint8Array.of(lineFeed), 0, 1)
    this.#size = torn ? size + 1 : size
  }
}

/**
 * A log file that is renamed when it reaches its size; a new one begins, and the oldest renamed files are deleted.
 *
 * The newest renamed file has the highest number, not the latest time in its name: a clock may be set back. The number
 * continues from the names in the folder, so it grows across restarts.
 */
export class RotatingFile extends LogFile {
  readonly #maxBytes: number
  readonly #maxFiles: number
  readonly #reports: LogReports
  readonly #fileSystem: FileSystem
  readonly #folder: string
  #lastNumber = 0
  /** When a rotation last failed; undefined after one that succeeded. */
  #failedMs: number | undefined
  #deletionFailed = false

  /**
   * @param maxBytes the size at which the file is renamed
   * @param maxFiles the number of renamed files to keep; 0 keeps all
   */
  constructor(path: string, maxBytes: number, maxFiles: number, reports: LogReports, fileSystem: FileSystem = fs) {
    super(path, fileSystem)
    this.#maxBytes = maxBytes
    this.#maxFiles = maxFiles
    this.#reports = reports
    this.#fileSystem = fileSystem
    this.#folder = dirname(path)
  }

  override get room(): number {
    return this.#maxBytes - this.size
  }

  override batchWritten(): void {
    const { now, report } = this.#reports
    if (this.room > 0 || (this.#failedMs !== undefined && isTooEarly(now(), this.#failedMs))) return
    try {
      const done = this.#rotate()
      this.#failedMs = undefined
      report('info', done)
      this.#deleteOldest()
    } catch (error) {
      const isFirst = this.#failedMs === undefined
      this.#failedMs = now()
      if (isFirst) this.#warn(`Cannot rotate ${this.path}: ${reasonOf(error)}. Lines still go to the same file`)
    }
  }

  /** Renames the file and opens a new one. Returns a message. When it throws, the old file is still open. */
  #rotate(): string {
    if (!this.isAtPath()) {
      this.reopen()
      return `Began a new ${this.path}: the old one had been moved away`
    }
    const name = this.#nextName()
    const to = join(this.#folder, name)
    this.#fileSystem.renameSync(this.path, to)
    try {
      this.reopen()
    } catch (error) {
      this.#fileSystem.renameSync(to, this.path)
      throw error
    }
    return `Rotated ${basename(this.path)} to ${name}`
  }

  #nextName(): string {
    const time = compactTime(this.#reports.now())
    this.#lastNumber = Math.max(this.#lastNumber, this.#rotatedFiles().at(-1)?.number ?? 0)
    let name: string
    do {
      this.#lastNumber += 1
      name = `svc_${time}_${String(this.#lastNumber).padStart(6, '0')}.log`
    } while (this.#fileSystem.existsSync(join(this.#folder, name)))
    return name
  }

  /** The renamed files in the folder, the oldest first. */
  #rotatedFiles(): { name: string; number: number }[] {
    return this.#fileSystem
      .readdirSync(this.#folder)
      .map((name) => ({ name, number: Number(rotatedName.exec(name)?.[1]) }))
      .filter(({ number }) => !Number.isNaN(number))
      .sort((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1))
  }

  #deleteOldest(): void {
    if (this.#maxFiles === 0) return
    try {
      const files = this.#rotatedFiles()
      for (const { name } of files.slice(0, -this.#maxFiles)) this.#fileSystem.unlinkSync(join(this.#folder, name))
      this.#deletionFailed = false
    } catch (error) {
      if (!this.#deletionFailed) this.#warn(`Cannot delete old log files: ${reasonOf(error)}. They are kept`)
      this.#deletionFailed = true
    }
  }

  #warn(message: string): void {
    this.#reports.alert(message)
    this.#reports.report('warn', message)
  }
}
