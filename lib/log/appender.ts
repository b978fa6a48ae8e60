/**
 * Gathers log lines and appends them to a target: one write per turn of the event loop, earlier when 64 KiB are there.
 *
 * Surprise: it never throws. While the target cannot be written it keeps the batch that failed and the newest lines,
 * up to 64 KiB of text; what does not fit is lost, counted and told. Every line given to it ends up in exactly one
 * place: on disk (`written`), counted as `lost`, or still held.
 */
import { Buffer } from 'node:buffer'
import { reasonOf } from '../base/reason.ts'
import { codeOf } from './log-file.ts'
import type { LogTarget } from './log-file.ts'
import { isTooEarly, retryMs } from './retry.ts'

/** Takes a line for the general log, module `logger`: what happened to a log. */
export type LogReport = (level: 'info' | 'warn', message: string) => void

/** What an appender is made of. */
export interface AppenderOptions {
  readonly target: LogTarget
  /** Told of outages, their ends, and reopening. */
  readonly report: LogReport
  /** Prints what the log itself cannot hold now: one line, without its end. */
  readonly alert: (message: string) => void
  /** The time in milliseconds. */
  readonly now: () => number
  /** `latin1` where every line is ASCII, which it encodes in half the time; `utf8` unless given. */
  readonly encoding?: 'utf8' | 'latin1'
}

const batchLength = 64 * 1024
const maxBytesPerUnit = 3
/** How often the file is looked for at its path, in milliseconds. */
const lookMs = 1000
const lineFeed = 10
const space = 32
const worthWaiting = new Set(['ENOSPC', 'EDQUOT', 'EAGAIN'])

interface Batch {
  readonly bytes: Uint8Array
  /** How many bytes are written. */
  offset: number
  /** How many lines are not yet wholly written. */
  lines: number
}

interface Outage {
  readonly reason: string
  readonly lostBefore: number
  lastTryMs: number
}

/** The buffer in front of a target, with its counters. */
export class Appender {
  readonly #target: LogTarget
  readonly #report: LogReport
  readonly #alert: (message: string) => void
  readonly #now: () => number
  readonly #encoding: 'utf8' | 'latin1'
  readonly #turn = (): void => {
    this.#scheduled = false
    this.#drain()
  }
  readonly #memory = Buffer.allocUnsafeSlow(2 * batchLength * maxBytesPerUnit)
  #text = ''
  #lines = 0
  #flushAt = batchLength
  #scheduled = false
  #retry: NodeJS.Timeout | undefined
  readonly #watch: NodeJS.Timeout
  #draining = false
  #closed = false
  #batch: Batch | undefined
  #outage: Outage | undefined
  #written = 0
  #lost = 0

  /** Opens the target. Where that fails, the appender begins with an outage. */
  constructor(options: AppenderOptions) {
    this.#target = options.target
    this.#report = options.report
    this.#alert = options.alert
    this.#now = options.now
    this.#encoding = options.encoding ?? 'utf8'
    this.#drain()
    this.#watch = setInterval(() => this.#look(), lookMs).unref()
  }

  /** The lines that are on disk. */
  get written(): number {
    return this.#written
  }

  /** The lines that will never be. */
  get lost(): number {
    return this.#lost
  }

  /** Why the target cannot be written now, or undefined when it can. */
  get problem(): string | undefined {
    return this.#outage?.reason
  }

  /**
   * Takes one line with its end. It may hold further lines that begin with a space: they belong to the first.
   * @param count how many lines it is, where it is more than one
   */
  append(line: string, count = 1): void {
    this.#text += line
    this.#lines += count
    if (this.#text.length >= this.#flushAt) this.#overflow()
    else if (!this.#scheduled) this.#schedule()
  }

  /** Writes now what is held. What cannot be written stays held. */
  flush(): void {
    this.#drain()
    if (this.#lines > 0 && this.#outage === undefined) this.#drain() // what the first one reported, such as a rotation
  }

  /** Writes what is held, then goes on with the file that is at the target's path now. */
  reopen(): void {
    if (this.#closed) return
    this.flush()
    try {
      this.#target.reopen()
    } catch (error) {
      if (this.#outage === undefined) this.#keepOldFile(error)
      return
    }
    this.#cutTornLine()
    this.#report('info', `Reopened ${this.#target.path}`)
    this.flush()
  }

  /** Writes what is held and closes the target. What cannot be written, now or later, is lost. */
  close(): void {
    if (this.#closed) return
    this.flush()
    const held = this.#lines + (this.#batch?.lines ?? 0)
    if (held > 0) {
      this.#alert(`The log ${this.#target.path} is closed. Lines lost: ${held}. ${this.#outage?.reason ?? ''}`)
    }
    this.#closed = true
    this.#lost += held
    this.#forget()
    this.#batch = undefined
    this.#flushAt = 0
    clearTimeout(this.#retry)
    clearInterval(this.#watch)
    this.#target.close()
  }

  /** A file that somebody has removed would take lines that nobody ever reads. */
  #look(): void {
    if (this.#outage !== undefined) return
    try {
      if (this.#target.isAtPath()) return
      this.#target.reopen()
    } catch (error) {
      return this.#fail(error)
    }
    this.#report('warn', `${this.#target.path} was removed or moved away: began a new one`)
  }

  #schedule(): void {
    this.#scheduled = true
    if (this.#outage === undefined) setImmediate(this.#turn)
    else this.#retry = setTimeout(this.#turn, retryMs).unref()
  }

  #overflow(): void {
    if (this.#draining) return
    if (this.#closed || (this.#outage !== undefined && isTooEarly(this.#now(), this.#outage.lastTryMs))) {
      this.#lost += this.#lines
      this.#forget()
    } else {
      this.#drain()
    }
  }

  #drain(): void {
    if (this.#draining || this.#closed) return
    this.#draining = true
    try {
      this.#target.open()
      this.#writeBatch()
      this.#takeBatch()
      this.#writeBatch()
      if (this.#outage !== undefined) this.#endOutage(this.#outage)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#draining = false
      const room = this.#target.room
      this.#flushAt = this.#outage === undefined && room > 0 && room < batchLength ? room : batchLength
    }
  }

  #takeBatch(): void {
    if (this.#lines === 0) return
    this.#batch = { bytes: this.#bytesOf(this.#text), offset: 0, lines: this.#lines }
    this.#forget()
  }

  #writeBatch(): void {
    const batch = this.#batch
    if (batch === undefined) return
    while (batch.offset < batch.bytes.length) batch.offset += this.#target.write(batch.bytes, batch.offset)
    this.#written += batch.lines
    this.#batch = undefined
    this.#target.batchWritten()
  }

  /** The text as bytes. There is one batch at a time, so all share one memory: new ones would cost a tenth more. */
  #bytesOf(text: string): Uint8Array {
    if (text.length * maxBytesPerUnit > this.#memory.length) return Buffer.from(text, this.#encoding)
    return this.#memory.subarray(0, this.#memory.write(text, this.#encoding))
  }

  #forget(): void {
    this.#text = ''
    this.#lines = 0
  }

  #fail(error: unknown): void {
    const batch = this.#batch
    if (batch !== undefined) {
      const left = countLines(batch.bytes, batch.offset)
      this.#written += batch.lines - left
      batch.lines = left
    }
    this.#beginOutage(`Cannot write the log ${this.#target.path}: ${reasonOf(error)}`)
    if (!worthWaiting.has(codeOf(error) ?? '')) {
      this.#target.close()
      this.#cutTornLine()
    }
    if (!this.#scheduled) this.#schedule()
  }

  #beginOutage(reason: string): void {
    const lastTryMs = this.#now()
    if (this.#outage !== undefined) {
      this.#outage.lastTryMs = lastTryMs
      return
    }
    this.#outage = { reason, lostBefore: this.#lost, lastTryMs }
    this.#alert(`${reason}. It is tried again each second; lines that do not fit in memory meanwhile are lost`)
  }

  #endOutage(outage: Outage): void {
    this.#outage = undefined
    clearTimeout(this.#retry)
    this.#scheduled = false
    const message = `The log ${this.#target.path} is written again. Lines lost: ${this.#lost - outage.lostBefore}`
    this.#alert(message)
    this.#report('warn', `${message} (${outage.reason})`)
  }

  #keepOldFile(error: unknown): void {
    const message = `Cannot reopen ${this.#target.path}: ${reasonOf(error)}. Lines go on to the file that was open`
    this.#alert(message)
    this.#report('warn', message)
  }

  /** The rest of a line whose beginning is in another file, or was ended there, would be no line: it is lost. */
  #cutTornLine(): void {
    const batch = this.#batch
    if (batch === undefined || isLineStart(batch.bytes, batch.offset)) return
    const isWhole = isLineStart(batch.bytes, batch.offset + 1)
    while (!isLineStart(batch.bytes, batch.offset)) batch.offset += 1
    if (isWhole) return
    batch.lines -= 1
    this.#lost += 1
  }
}

function isLineStart(bytes: Uint8Array, at: number): boolean {
  return at === 0 || (bytes[at - 1] === lineFeed && bytes[at] !== space)
}

/** The lines that end after `from`, but for one of which nothing but its line feed is missing: it is on disk. */
function countLines(bytes: Uint8Array, from: number): number {
  let count = 0
  for (let at = from + 2; at <= bytes.length; at += 1) if (isLineStart(bytes, at)) count += 1
  return count
}
