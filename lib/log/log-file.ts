/**
 * A log file that is open for appending: made when missing (0640, its folder 0750), told apart from what is at its
 * path by now.
 *
 * Surprise: a file whose last line has no end (a crash, a full disk) gets that end when it is opened, so that the next
 * line does not run into it.
 */
import { dirname } from 'node:path'
import type { FileSystem } from './file-system.ts'

/** Where an `Appender` writes to. What throws, throws the file system's errors. */
export interface LogTarget {
  /** The path that lines go to. */
  readonly path: string
  /** The bytes that may still be written before something is to be done between two lines; Infinity: any number. */
  readonly room: number
  /** Opens the target unless it is open. */
  open(): void
  /** Opens what is at the path now and leaves what was open. When this throws, what was open stays open. */
  reopen(): void
  /** Writes the bytes from `offset` on with one system call. Returns how many were taken, 1 at least. */
  write(bytes: Uint8Array, offset: number): number
  /** Whether the path still leads to what is open here. Throws what cannot be looked at. */
  isAtPath(): boolean
  /** Told after each batch of whole lines, when the target may change the file. Throws nothing. */
  batchWritten(): void
  /** Closes the target. It may be opened again. Throws nothing. */
  close(): void
}

const fileMode = 0o640
const folderMode = 0o750
const lineFeed = 10

/** The plain target: one file that only grows. */
export class LogFile implements LogTarget {
  readonly path: string
  readonly room = Number.POSITIVE_INFINITY
  readonly #fileSystem: FileSystem
  #fd: number | undefined
  #size = 0
  #regular = true

  /** @param path the file; it is opened by `open()` */
  constructor(path: string, fileSystem: FileSystem) {
    this.path = path
    this.#fileSystem = fileSystem
  }

  /** The size in bytes, as far as this process knows; 0 for what has none, such as a pipe. */
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
    if (count === 0) throw new Error(`Cannot write to ${this.path}: the system took none of ${length} bytes`)
    this.#size += count
    return count
  }

  batchWritten(): void {}

  close(): void {
    const fd = this.#fd
    if (fd === undefined) return
    this.#fd = undefined
    try {
      this.#fileSystem.closeSync(fd)
    } catch {
      // The descriptor is gone all the same (close(2)), and write() has told what the system took.
    }
  }

  /** Whether the path still leads to the file that is open here. Throws what `stat` throws, but for a missing file. */
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
      return this.#fileSystem.openSync(this.path, 'a+', fileMode)
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error
      this.#fileSystem.mkdirSync(dirname(this.path), { recursive: true, mode: folderMode })
      return this.#fileSystem.openSync(this.path, 'a+', fileMode)
    }
  }

  #endLastLine(fd: number, size: number): void {
    const last = new Uint8Array(1)
    const torn = size > 0 && this.#fileSystem.readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== lineFeed
    if (torn) this.#fileSystem.writeSync(fd, Uint8Array.of(lineFeed), 0, 1)
    this.#size = torn ? size + 1 : size
  }
}

/** The code of a system error (`ENOSPC`), or undefined for any other value. */
export function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
