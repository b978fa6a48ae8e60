/**
 * Buffers log lines and appends them to a file: one write per turn of the event loop, earlier when 64 KiB are waiting.
 *
 * Logging never throws. While the file cannot be written, the batch that failed and up to 64 KiB of newer text stay in
 * memory; lines that do not fit are dropped, counted and reported. So every line ends up in exactly one place: on disk
 * (`written`), counted as `lost`, or in memory.
 */
import { Buffer } from 'node:buffer'
import { reasonOf } from '../base/reason.ts'
import { codeOf, isTooEarly, retryMs } from './log-file.ts'
import type { LogReports, LogTarget } from './log-file.ts'

const batchLength = 64 * 1024
const maxBytesPerUnit = 3
/** Milliseconds between two checks that the file is still at its path. */
const checkPathMs = 1000
const lineFeed = 10
const space = 32
/** With these errors the file stays open: writing may succeed again when there is room. */
const errorsOfFullDisk = new Set(['ENOSPC', 'EDQUOT', 'EAGAIN'])

/** Text taken from the buffer, as bytes. */
interface Batch {
  readonly bytes: Uint8Array
  /** The number of bytes written. */
  offset: number
  /** The number of lines not yet written completely. */
  lines: number
}

interface Outage {
  readonly reason: string
  readonly lostBefore: number
  lastTryMs: number
}

/** The buffer in front of a file, with its counters. Each log is an appender with its own lines. */
export class Appender {
  readonly #target: LogTarget
  readonly #reports: LogReports
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

  /**
   * Opens the target. If that fails, the appender begins with an outage.
   * @param encoding `latin1` if every line is ASCII: encoding takes half the time
   */
  constructor(target: LogTarget, reports: LogReports, encoding: 'utf8' | 'latin1' = 'utf8') {
    this.#target = target
    this.#reports = reports
    this.#encoding = encoding
    this.#drain()
    this.#watch = setInterval(() => this.#reopenIfMoved(), checkPathMs).unref()
  }

  /** The number of lines on disk. */
  get written(): number {
    return this.#written
  }

  /** The number of lines that could not be written. */
  get lost(): number {
    return this.#lost
  }

  /** Why the file cannot be written now, or undefined when it can. */
  get problem(): string | undefined {
    return this.#outage?.reason
  }

  /** Appends one line with its line end. Further lines in it that begin with a space belong to the first. */
  append(line: string): void {
    this.#add(line, 1)
  }

  /** Appends whole lines from another process of this server. */
  take(lines: string): void {
    let count = 0
    for (let at = lines.indexOf('\n'); at >= 0; at = lines.indexOf('\n', at + 1)) count += 1
    this.#add(lines, count)
  }

  /** Writes the buffer now instead of at the end of this turn. Call it before the process exits. */
  flush(): void {
    this.#drain()
    // The first drain may report something, such as a rotation.
    if (this.#lines > 0 && this.#outage === undefined) this.#drain()
  }

  /** Reopens the file at the path, for example after logrotate moved the old one away. */
  reopen(): void {
    if (this.#closed) return
    this.flush()
    try {
      this.#target.reopen()
    } catch (error) {
      if (this.#outage !== undefined) return
      const message = `Cannot reopen ${this.#target.path}: ${reasonOf(error)}. Lines still go to the old file`
      this.#reports.alert(message)
      this.#reports.report('warn', message)
      return
    }
    this.#cutTornLine()
    this.#reports.report('info', `Reopened ${this.#target.path}`)
    this.flush()
  }

  /** Flushes and closes. Lines appended afterwards are counted as lost. */
  close(): void {
    if (this.#closed) return
    this.flush()
    const held = this.#lines + (this.#batch?.lines ?? 0)
    if (held > 0) {
      const reason = this.#outage?.reason ?? ''
      this.#reports.alert(`The log ${this.#target.path} is closed. Lines lost: ${held}. ${reason}`)
    }
    this.#closed = true
    this.#lost += held
    this.#emptyBuffer()
    this.#batch = undefined
    this.#flushAt = 0
    clearTimeout(this.#retry)
    clearInterval(this.#watch)
    this.#target.close()
  }

  #add(text: string, lines: number): void {
    this.#text += text
    this.#lines += lines
    if (this.#text.length >= this.#flushAt) this.#overflow()
    else if (!this.#scheduled) this.#schedule()
  }

  #schedule(): void {
    this.#scheduled = true
    if (this.#outage === undefined) setImmediate(this.#turn)
    else this.#retry = setTimeout(this.#turn, retryMs).unref()
  }

  #overflow(): void {
    if (this.#draining) return
    if (this.#closed || (this.#outage !== undefined && isTooEarly(this.#reports.now(), this.#outage.lastTryMs))) {
      this.#lost += this.#lines
      this.#emptyBuffer()
    } else {
      this.#drain()
    }
  }

  /** Writes the batch that failed, if any, then the buffer. */
  #drain(): void {
    if (this.#draining || this.#closed) return
    this.#draining = true
    try {
      this.#target.open()
      this.#writeBatch()
      if (this.#lines > 0) {
        this.#batch = { bytes: this.#bytesOf(this.#text), offset: 0, lines: this.#lines }
        this.#emptyBuffer()
        this.#writeBatch()
      }
      if (this.#outage !== undefined) this.#endOutage(this.#outage)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#draining = false
      const room = this.#target.room
      this.#flushAt = this.#outage === undefined && room > 0 && room < batchLength ? room : batchLength
    }
  }

  #writeBatch(): void {
    const batch = this.#batch
    if (batch === undefined) return
    while (batch.offset < batch.bytes.length) batch.offset += this.#target.write(batch.bytes, batch.offset)
    this.#written += batch.lines
    this.#batch = undefined
    this.#target.batchWritten()
  }

  /** There is one batch at a time, so all of them share one buffer: allocating one for each costs 10 % more. */
  #bytesOf(text: string): Uint8Array {
    if (text.length * maxBytesPerUnit > this.#memory.length) return Buffer.from(text, this.#encoding)
    return this.#memory.subarray(0, this.#memory.write(text, this.#encoding))
  }

  #emptyBuffer(): void {
    this.#text = ''
    this.#lines = 0
  }

  /** Begins a new file when the old one was removed: its lines would never be read. */
  #reopenIfMoved(): void {
    if (this.#outage !== undefined) return
    try {
      if (this.#target.isAtPath()) return
      this.#target.reopen()
    } catch (error) {
      return this.#fail(error)
    }
    this.#reports.report('warn', `${this.#target.path} was removed or moved away: began a new one`)
  }

  #fail(error: unknown): void {
    const batch = this.#batch
    if (batch !== undefined) {
      const left = countLines(batch.bytes, batch.offset)
      this.#written += batch.lines - left
      batch.lines = left
    }
    this.#beginOutage(`Cannot write the log ${this.#target.path}: ${reasonOf(error)}`)
    if (!errorsOfFullDisk.has(codeOf(error) ?? '')) {
      this.#target.close()
      this.#cutTornLine()
    }
    if (!this.#scheduled) this.#schedule()
  }

  #beginOutage(reason: string): void {
    const lastTryMs = this.#reports.now()
    if (this.#outage !== undefined) {
      this.#outage.lastTryMs = lastTryMs
      return
    }
    this.#outage = { reason, lostBefore: this.#lost, lastTryMs }
    this.#reports.alert(`${reason}. Retrying each second; lines that do not fit in memory until then are lost`)
  }

  #endOutage(outage: Outage): void {
    this.#outage = undefined
    clearTimeout(this.#retry)
    this.#scheduled = false
    const message = `The log ${this.#target.path} is writable again. Lines lost: ${this.#lost - outage.lostBefore}`
    this.#reports.alert(message)
    this.#reports.report('warn', `${message} (${outage.reason})`)
  }

  /** Counts a line whose beginning is in another file as lost, and skips the rest of it. */
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

/** The lines that end after `from`. A line that lacks only its line feed does not count: it is on disk. */
function countLines(bytes: Uint8Array, from: number): number {
  let count = 0
  for (let at = from + 2; at <= bytes.length; at += 1) if (isLineStart(bytes, at)) count += 1
  return count
}
