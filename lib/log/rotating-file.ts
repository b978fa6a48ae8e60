/**
 * A log file that is renamed and begun anew when it reaches its size; the oldest of the renamed ones are deleted.
 *
 * Surprise: the newest file is the one with the highest number, not the one with the latest time in its name, since a
 * clock may be set back. The number grows over restarts, because it is taken from the names in the folder.
 */
import { basename, dirname, join } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import type { LogReport } from './appender.ts'
import type { FileSystem } from './file-system.ts'
import { compactTime } from './line.ts'
import { LogFile } from './log-file.ts'
import type { LogTarget } from './log-file.ts'
import { isTooEarly } from './retry.ts'

/** What a rotating file is made of. */
export interface RotatingFileOptions {
  readonly path: string
  /** The size at which the file is renamed, in bytes. */
  readonly maxBytes: number
  /** How many renamed files stay; 0 keeps all. */
  readonly maxFiles: number
  readonly fileSystem: FileSystem
  /** Told of each rotation and of what hinders one. */
  readonly report: LogReport
  /** Prints what is to be seen at once: one line, without its end. */
  readonly alert: (message: string) => void
  /** The time in milliseconds. */
  readonly now: () => number
}

const rotatedName = /^svc_\d{14}_(\d{6}|[1-9]\d{6,14})\.log$/

interface RotatedFile {
  readonly name: string
  readonly number: number
}

/** The target of the general log. */
export class RotatingFile implements LogTarget {
  readonly #options: RotatingFileOptions
  readonly #folder: string
  readonly #file: LogFile
  #lastNumber = 0
  #refusedMs: number | undefined
  #deletionRefused = false

  constructor(options: RotatingFileOptions) {
    this.#options = options
    this.#folder = dirname(options.path)
    this.#file = new LogFile(options.path, options.fileSystem)
  }

  get path(): string {
    return this.#file.path
  }

  get room(): number {
    return this.#options.maxBytes - this.#file.size
  }

  open(): void {
    this.#file.open()
  }

  reopen(): void {
    this.#file.reopen()
  }

  write(bytes: Uint8Array, offset: number): number {
    return this.#file.write(bytes, offset)
  }

  isAtPath(): boolean {
    return this.#file.isAtPath()
  }

  batchWritten(): void {
    const { now, report } = this.#options
    if (this.room > 0 || (this.#refusedMs !== undefined && isTooEarly(now(), this.#refusedMs))) return
    try {
      const done = this.#rotate()
      this.#refusedMs = undefined
      report('info', done)
      this.#deleteOldest()
    } catch (error) {
      this.#refuse(error)
    }
  }

  close(): void {
    this.#file.close()
  }

  /** Renames the file and opens a new one. Returns what was done. When it throws, the old file is still open. */
  #rotate(): string {
    if (!this.#file.isAtPath()) {
      this.#file.reopen()
      return `Began a new ${this.path}: the old one had been moved away`
    }
    const { fileSystem } = this.#options
    const name = this.#nextName()
    const to = join(this.#folder, name)
    fileSystem.renameSync(this.path, to)
    try {
      this.#file.reopen()
    } catch (error) {
      fileSystem.renameSync(to, this.path)
      throw error
    }
    return `Rotated ${basename(this.path)} to ${name}`
  }

  #nextName(): string {
    const { now, maxFiles, fileSystem } = this.#options
    const time = compactTime(now())
    if (this.#lastNumber === 0 || maxFiles > 0) {
      this.#lastNumber = Math.max(this.#lastNumber, this.#rotatedFiles().at(-1)?.number ?? 0)
    }
    let name: string
    do {
      this.#lastNumber += 1
      name = `svc_${time}_${String(this.#lastNumber).padStart(6, '0')}.log`
    } while (fileSystem.existsSync(join(this.#folder, name)))
    return name
  }

  /** The renamed files in the folder, the oldest first. */
  #rotatedFiles(): RotatedFile[] {
    const found: RotatedFile[] = []
    for (const name of this.#options.fileSystem.readdirSync(this.#folder)) {
      const number = rotatedName.exec(name)?.[1]
      if (number !== undefined) found.push({ name, number: Number(number) })
    }
    return found.sort((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1))
  }

  #deleteOldest(): void {
    const { maxFiles, fileSystem } = this.#options
    if (maxFiles === 0) return
    try {
      for (const { name } of this.#rotatedFiles().slice(0, -maxFiles)) fileSystem.unlinkSync(join(this.#folder, name))
      this.#deletionRefused = false
    } catch (error) {
      if (!this.#deletionRefused) this.#say(`Cannot delete old log files: ${reasonOf(error)}. They stay`)
      this.#deletionRefused = true
    }
  }

  #refuse(error: unknown): void {
    const isFirst = this.#refusedMs === undefined
    this.#refusedMs = this.#options.now()
    if (isFirst) this.#say(`Cannot rotate ${this.path}: ${reasonOf(error)}. Lines go on to the same file`)
  }

  #say(message: string): void {
    this.#options.alert(message)
    this.#options.report('warn', message)
  }
}
