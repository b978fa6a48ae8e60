/**
 * `audit.log`: one JSON record per line for each change of the server, with who made it. Nothing else is written there,
 * so no message of an application or of a client can pass for a change.
 *
 * The same failure of the same client within a minute is one record with a count, written when the minute ends, so that
 * password guessing does not push out the changes.
 */
import { constants } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Change } from '../base/ports.ts'
import { isObject } from '../base/object.ts'
import { Appender } from './appender.ts'
import { createProcessConsole } from './console.ts'
import { createJsonClock, escapeControls, escapeInJson } from './line.ts'
import { LogFile, type LogParts, type LogReports } from './log-file.ts'
import type { LogOrigin } from './record.ts'

/** A line of the file. */
export interface AuditRecord extends Change, LogOrigin {
  /** Local time with its offset (RFC 3339). */
  readonly time: string
  /** How often it happened within a minute, if more than once. */
  readonly count?: number
}

/** The dependencies of the audit log. */
export interface AuditLogParts extends LogParts {
  /** Reports events of this log, such as an outage, to the general log. */
  readonly report: LogReports['report']
  readonly origin?: LogOrigin
}

/** The name of the file in `paths.log`. */
export const auditFile = 'audit.log'

const failureMs = 60_000
/** The most failures counted at the same time. When there are more, all are written. */
const mostFailures = 1000
/** The most bytes read from a file. */
const maxReadBytes = 2 ** 24

interface Failures {
  readonly change: Change
  count: number
}

/** The audit log of one process. Nothing throws. */
export class AuditLog extends Appender {
  readonly #clock = createJsonClock()
  readonly #now: () => number
  readonly #origin: LogOrigin
  readonly #failures = new Map<string, Failures>()
  #timer: NodeJS.Timeout | undefined

  /** @param folder `paths.log`, absolute */
  constructor(folder: string, parts: AuditLogParts) {
    const { report, origin = {}, now = Date.now, consolePort = createProcessConsole(), fileSystem } = parts
    const alert = (message: string): void => consolePort.error(`${escapeControls(message)}\n`)
    super(parts.target ?? new LogFile(resolve(folder, auditFile), fileSystem), { report, alert, now })
    this.#now = now
    this.#origin = origin
  }

  /** Writes a change. */
  record(change: Change): void {
    this.#write(change, 1)
  }

  /** Counts a failure with those of the same kind and client within a minute of the first. */
  recordFailure(change: Change): void {
    const key = JSON.stringify([change.by, change.what])
    const known = this.#failures.get(key)
    if (known !== undefined) {
      known.count += 1
      return
    }
    if (this.#failures.size >= mostFailures) this.#writeFailures()
    this.#failures.set(key, { change, count: 1 })
    this.#timer ??= setTimeout(() => this.#writeFailures(), failureMs).unref()
  }

  override close(): void {
    this.#writeFailures()
    super.close()
  }

  #writeFailures(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (const { change, count } of this.#failures.values()) this.#write(change, count)
    this.#failures.clear()
  }

  #write({ by, what, user, from, to }: Change, count: number): void {
    const counted = count > 1 ? { count } : {}
    const record = { time: this.#clock(this.#now()), by, user, what, from, to, ...counted, ...this.#origin }
    this.append(`${escapeInJson(JSON.stringify(record))}\n`)
  }
}

/**
 * Reads the last records of `audit.log` and, if it has too few, of its rotated, uncompressed files, newest first. Lines
 * that are not records are skipped.
 * @param folder `paths.log`, absolute
 * @param most the most records to return
 * @throws Error of the file system when a file exists and cannot be read
 */
export async function readAudit(folder: string, most: number): Promise<AuditRecord[]> {
  const found: AuditRecord[] = []
  for (const { path, size } of await filesOf(folder)) {
    if (found.length >= most) break
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

/** The audit log and its rotated files, the last written first. Pipes are left out. */
async function filesOf(folder: string): Promise<{ readonly path: string; readonly size: number }[]> {
  const names = (await readdir(folder)).filter((name) => name.startsWith(auditFile) && !name.endsWith('.gz'))
  const found: { readonly path: string; readonly size: number; readonly writtenAtMs: number }[] = []
  for (const name of names) {
    const path = join(folder, name)
    const stats = await stat(path).catch(() => undefined) // Rotation may have removed it.
    const isFilled = stats !== undefined && stats.isFile() && stats.size > 0
    if (isFilled) found.push({ path, size: stats.size, writtenAtMs: stats.mtimeMs })
  }
  return found.sort((a, b) => b.writtenAtMs - a.writtenAtMs)
}

function recordIn(line: string): AuditRecord | undefined {
  try {
    const value: unknown = JSON.parse(line)
    if (!isObject(value)) return undefined
    const isRecord = ['time', 'by', 'what'].every((name) => typeof value[name] === 'string')
    return isRecord ? (value as unknown as AuditRecord) : undefined // Its other members are shown as they are.
  } catch {
    return undefined // A truncated line.
  }
}
