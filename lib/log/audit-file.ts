/**
 * The file `audit.log`, which puts each record into the chain when it is written: a record that is lost before that,
 * for example because the disk is full, leaves the chain whole.
 *
 * The chain goes on from the last record in the folder: over restarts, and when logrotate has moved the file away.
 * `svc passwd` appends to the file while the server runs, so what others have appended is read before each record;
 * after the file was opened again, that is searched for behind the last own record.
 */
import * as fs from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { reasonOf } from '../base/reason.ts'
import { beforeFirst, chainedLineOf, type AuditChain, type Link } from './audit-chain.ts'
import { codeOf, LogFile, type FileSystem, type LogReports, type LogTarget } from './log-file.ts'

/** The name of the file in `paths.log`. */
export const auditFile = 'audit.log'

/** A file of the audit log. */
export interface AuditLogFile {
  readonly path: string
  /** In bytes, at least 1. */
  readonly size: number
  readonly writtenAtMs: number
}

interface AuditFileParts {
  readonly chain: AuditChain
  /** Whether the key outlives the process. If not, each start begins a new chain. */
  readonly isLasting: boolean
  readonly report: LogReports['report']
  readonly fileSystem?: FileSystem | undefined
}

/** A record that is being written. */
interface Pending {
  readonly link: Link
  readonly bytes: Uint8Array
  readonly lost: number
  offset: number
}

const lineFeed = 10
/** The bytes at the end of a file that are read to find the last record: usually, and where those have none. */
const usualTailBytes = 2 ** 16
const maxTailBytes = 2 ** 24
/** The most bytes of a compressed file that are read for the same purpose. */
const maxUnpackedBytes = 2 ** 27
const halfRecord = 'has half a record: the server or the machine crashed while it was written'

/** The file. Its lines come without numbers and `mac`. */
export class AuditFile implements LogTarget {
  readonly path: string
  readonly room = Number.POSITIVE_INFINITY
  /** Returns how many records have been lost; the log that counts them sets it. */
  lost = (): number => 0
  readonly #parts: AuditFileParts
  readonly #folder: string
  readonly #file: LogFile
  #last: Link | undefined
  #pending: Pending | undefined
  #lostBefore = 0
  /** Whether the file was opened again, so that others may have written to it unnoticed. */
  #isBehind = false

  /** @param folder `paths.log`, absolute */
  constructor(folder: string, parts: AuditFileParts) {
    this.path = join(folder, auditFile)
    this.#parts = parts
    this.#folder = folder
    this.#file = new LogFile(this.path, parts.fileSystem)
  }

  /** The last record that was written, or that the first one follows. */
  get head(): Link {
    return this.#last ?? beforeFirst
  }

  open(): void {
    this.#file.open()
  }

  reopen(): void {
    this.#file.reopen()
    this.#pending = undefined
    this.#isBehind = true
  }

  /** Writes one line. If it fails in the middle of it, the next call writes the rest. */
  write(bytes: Uint8Array, offset: number): number {
    const end = bytes.indexOf(lineFeed, offset) + 1
    const pending = (this.#pending ??= this.#chained(Buffer.from(bytes.subarray(offset, end - 1)).toString()))
    while (pending.offset < pending.bytes.length) pending.offset += this.#writePart(pending)
    this.#last = pending.link
    this.#lostBefore = pending.lost
    this.#pending = undefined
    return end - offset
  }

  isAtPath(): boolean {
    return this.#file.isAtPath()
  }

  batchWritten(): void {}

  close(): void {
    this.#file.close()
    this.#pending = undefined
    this.#isBehind = true
  }

  #writePart(pending: Pending): number {
    try {
      return this.#file.write(pending.bytes, pending.offset)
    } catch (error) {
      if (pending.offset === 0) this.#pending = undefined // Another program may append before the next attempt.
      throw error
    }
  }

  #chained(record: string): Pending {
    if (this.#last === undefined) this.#last = this.#parts.isLasting ? this.#lastOfFiles() : beforeFirst
    else this.#followOthers()
    this.#isBehind = false
    const lost = this.lost()
    const before = this.head
    const { line, ...link } = this.#parts.chain.line(record, before.seq + 1 + lost - this.#lostBefore, before)
    return { link, bytes: Buffer.from(`${line}\n`), lost, offset: 0 }
  }

  /** Continues after records that other programs with the key have appended. */
  #followOthers(): void {
    const appended = linesOf(this.#file.readAppended())
    const lines = this.#isBehind ? linesOf(tailOf(this.path, maxTailBytes, this.#parts.fileSystem)) : appended
    const { seq, mac } = this.head
    const own = this.#isBehind ? lines.findIndex((line) => line.startsWith(`{"seq":${seq},`) && line.includes(mac)) : -1
    for (const line of lines.slice(own + 1)) {
      const record = chainedLineOf(line)
      if (record === undefined && isHalfRecord(line)) continue
      if (record === undefined || !this.#parts.chain.follows(record, this.head)) {
        const problem = `${this.path}: another program has appended a line that does not follow record ${this.head.seq}`
        return this.#parts.report('warn', `${problem}. Check it: svc audit`)
      }
      this.#last = { seq: record.seq, mac: record.mac }
    }
  }

  /** Finds the last record: in the file, or if it has none, the highest one of the rotated files. */
  #lastOfFiles(): Link {
    const files = auditFiles(this.#folder, this.#parts.fileSystem)
    const current = files.filter(({ path }) => path === this.path).flatMap((file) => this.#lastIn(file) ?? [])
    const links = current.length > 0 ? current : files.flatMap((file) => this.#lastIn(file) ?? [])
    return links.reduce((highest, link) => (link.seq > highest.seq ? link : highest), beforeFirst)
  }

  #lastIn({ path }: AuditLogFile): Link | undefined {
    try {
      for (const bytes of [usualTailBytes, maxTailBytes]) {
        const lines = linesOf(tailOf(path, bytes, this.#parts.fileSystem))
        const last = lines.map(chainedLineOf).findLast((record) => record !== undefined)
        if (path === this.path && isHalfRecord(lines.at(-1) ?? '')) this.#parts.report('warn', `${path} ${halfRecord}`)
        if (last !== undefined) return { seq: last.seq, mac: last.mac }
      }
    } catch (error) {
      this.#parts.report('warn', `Cannot read ${path}, so the audit log may begin anew: ${reasonOf(error)}`)
    }
    return undefined
  }
}

/** Whether a line is the beginning of a record, as a crash may leave it. */
export function isHalfRecord(line: string): boolean {
  return line.startsWith('{"seq":') && !line.endsWith('}')
}

/**
 * The audit log and its rotated files, compressed ones too, the last written first. Pipes are left out.
 * @param folder `paths.log`, absolute; it may be missing
 * @throws Error of the file system when the folder cannot be read
 */
export function auditFiles(folder: string, fileSystem: FileSystem = fs): AuditLogFile[] {
  const found: AuditLogFile[] = []
  for (const name of namesIn(folder, fileSystem)) {
    if (name !== auditFile && !name.startsWith(`${auditFile}-`) && !name.startsWith(`${auditFile}.`)) continue
    const path = join(folder, name)
    try {
      const facts = fileSystem.statSync(path)
      if (facts.isFile() && facts.size > 0) found.push({ path, size: facts.size, writtenAtMs: facts.mtimeMs })
    } catch {
      // Rotation has removed it.
    }
  }
  return found.sort((a, b) => b.writtenAtMs - a.writtenAtMs)
}

function namesIn(folder: string, fileSystem: FileSystem): readonly string[] {
  try {
    return fileSystem.readdirSync(folder)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return []
    throw error
  }
}

function tailOf(path: string, maxBytes: number, fileSystem: FileSystem = fs): Buffer {
  if (path.endsWith('.gz')) return gunzipSync(fs.readFileSync(path), { maxOutputLength: maxUnpackedBytes })
  const fd = fileSystem.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK, 0)
  try {
    const { size } = fileSystem.fstatSync(fd)
    const bytes = Buffer.alloc(Math.min(size, maxBytes))
    const count = fileSystem.readSync(fd, bytes, 0, bytes.length, size - bytes.length)
    return bytes.subarray(0, count)
  } finally {
    fileSystem.closeSync(fd)
  }
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString().split('\n').filter((line) => line !== '')
}
