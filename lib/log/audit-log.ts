/**
 * `audit.log`: one JSON record per line for each change of the server, with who made it, in a chain that shows
 * tampering (`audit-chain.ts`). Nothing else is written there, so no message of an application or of a client can pass
 * for a change. With several processes the primary writes it: the workers send their records without number and `mac`.
 *
 * The same failure of the same client within a minute is one record with a count, written when the minute ends, so that
 * password guessing does not push out the changes.
 */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Change } from '../base/ports.ts'
import { isObject } from '../base/object.ts'
import type { AuditKeys } from '../config/app-key.ts'
import { Appender } from './appender.ts'
import { AuditChain, beforeFirst, chainedLineOf, type Link } from './audit-chain.ts'
import { AuditFile, auditFiles } from './audit-file.ts'
import { createProcessConsole } from './console.ts'
import { createJsonClock, escapeControls, escapeInJson } from './line.ts'
import type { LogParts, LogReports } from './log-file.ts'
import type { LogOrigin } from './record.ts'

/** A line of the file. */
export interface AuditRecord extends Change, LogOrigin {
  /** The number of the record, from 1; `mac` is its place in the chain. */
  readonly seq: number
  /** Local time with its offset (RFC 3339). */
  readonly time: string
  /** How often it happened within a minute, if more than once. */
  readonly count?: number
  /** 64 hexadecimal digits. */
  readonly mac: string
}

/** The dependencies of the audit log. */
export interface AuditLogParts extends LogParts {
  /** Reports events of this log, such as an outage, to the general log. */
  readonly report: LogReports['report']
  readonly origin?: LogOrigin
  /** Only a log with a `target`, which leads to the process that writes the file, needs none. */
  readonly keys?: AuditKeys | undefined
}

const failureMs = 60_000
/** The most failures counted at the same time. When there are more, all are written. */
const mostFailures = 1000
/** The most bytes read from a file. */
const maxReadBytes = 2 ** 24

/** A record without its number and `mac`. */
type Unchained = Omit<AuditRecord, 'seq' | 'mac'>

/** A record that a worker sends. */
type Sent = Unchained & {
  /** It counts with others of the same kind. */
  readonly failed?: true
}

/** The same failure of a client within a minute. */
interface Failure {
  readonly record: Sent
  readonly timer: NodeJS.Timeout
  count: number
}

/** The audit log of one process. Nothing throws. */
export class AuditLog extends Appender {
  readonly #clock = createJsonClock()
  readonly #now: () => number
  readonly #report: LogReports['report']
  readonly #origin: LogOrigin
  /** Undefined in a worker. */
  readonly #file: AuditFile | undefined
  readonly #failures = new Map<string, Failure>()

  /**
   * @param folder `paths.log`, absolute
   * @throws RangeError if there is neither a target nor a key, or a key is empty
   */
  constructor(folder: string, parts: AuditLogParts) {
    const { report, origin = {}, now = Date.now, consolePort = createProcessConsole(), target } = parts
    const alert = (message: string): void => consolePort.error(`${escapeControls(message)}\n`)
    const file = target === undefined ? fileOf(folder, parts) : undefined
    super(target ?? (file as AuditFile), { report, alert, now }) // One of both is there.
    this.#file = file
    if (file !== undefined) file.lost = () => this.lost
    this.#now = now
    this.#report = report
    this.#origin = origin
  }

  /** The last record that was written. */
  get head(): Link {
    return this.#file?.head ?? beforeFirst
  }

  /** Writes a change. */
  record(change: Change): void {
    this.#write(this.#recordOf(change))
  }

  /** Counts a failure with those of the same kind and client within a minute of the first. */
  recordFailure(change: Change): void {
    const record = this.#recordOf(change)
    if (this.#file === undefined) this.#write({ ...record, failed: true })
    else this.#count(record)
  }

  /** Takes whole lines from a worker. */
  override take(lines: string): void {
    for (const line of lines.split('\n')) {
      if (line === '') continue
      const sent = sentIn(line)
      if (sent === undefined) this.#report('warn', 'a process sent a line to the audit log that is no record: dropped')
      else if (sent.failed === true) this.#count(sent)
      else this.#write(sent)
    }
  }

  override close(): void {
    this.writeFailures()
    super.close()
  }

  #recordOf({ by, what, user, from, to }: Change): Unchained {
    const { node, process } = this.#origin
    const time = this.#clock(this.#now())
    return { time, by, user, what, from, to, ...(node && { node }), ...(process && { process }) }
  }

  #count(record: Sent): void {
    const key = JSON.stringify([record.by, record.what])
    const known = this.#failures.get(key)
    if (known !== undefined) {
      known.count += 1
      return
    }
    if (this.#failures.size >= mostFailures) this.writeFailures()
    const timer = setTimeout(() => this.#writeFailure(key), failureMs).unref()
    this.#failures.set(key, { record, count: 1, timer })
  }

  /** Writes the failures that have been counted, before their minute is over. */
  writeFailures(): void {
    for (const key of this.#failures.keys()) this.#writeFailure(key)
  }

  #writeFailure(key: string): void {
    const failure = this.#failures.get(key)
    if (failure === undefined) return
    const { record, count, timer } = failure
    clearTimeout(timer)
    this.#failures.delete(key)
    const { process, failed: _, ...others } = record
    this.#write({ ...others, ...(count > 1 ? { count } : process && { process }) })
  }

  #write(record: Sent): void {
    this.append(`${escapeInJson(JSON.stringify(record))}\n`)
  }
}

function fileOf(folder: string, { report, keys, fileSystem }: AuditLogParts): AuditFile {
  const chain = new AuditChain(keys?.keys ?? [])
  return new AuditFile(resolve(folder), { chain, isLasting: keys?.isLasting ?? true, report, fileSystem })
}

/**
 * Reads the last records of `audit.log` and, if it has too few, of its rotated, uncompressed files, newest first. Lines
 * that are not records are skipped; whether the others follow each other is not checked.
 * @param folder `paths.log`, absolute
 * @param most the most records to return
 * @throws Error of the file system when a file exists and cannot be read
 */
export async function readAudit(folder: string, most: number): Promise<AuditRecord[]> {
  const found: AuditRecord[] = []
  for (const { path, size } of auditFiles(folder)) {
    if (found.length >= most) break
    if (path.endsWith('.gz')) continue
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const ofFile: AuditRecord[] = []
    for await (const line of handle.readLines({ start: Math.max(0, size - maxReadBytes), end: size - 1 })) {
      const record = recordIn(line)
      if (record !== undefined) ofFile.push(record)
    }
    found.push(...ofFile.slice(found.length - most).reverse())
  }
  return found
}

function recordIn(line: string): AuditRecord | undefined {
  if (chainedLineOf(line) === undefined) return undefined
  return sentIn(line) as AuditRecord | undefined // With its number and `mac`; other members are shown as they are.
}

/** Reads a record of another process, whose application can write to the same descriptor. */
function sentIn(line: string): Sent | undefined {
  try {
    const value: unknown = JSON.parse(line)
    if (!isObject(value)) return undefined
    const isRecord = ['time', 'by', 'what'].every((name) => typeof value[name] === 'string')
    return isRecord ? (value as unknown as Sent) : undefined
  } catch {
    return undefined
  }
}
