/** The command `audit`: checks that the records of the audit log follow each other. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { reasonOf } from '../base/reason.ts'
import { auditKeysOf, chooseAppKey } from '../config/app-key.ts'
import type { LoadedConfig } from '../config/load.ts'
import { AuditChain, beforeFirst, chainedLineOf, type ChainedLine, type Link } from '../log/audit-chain.ts'
import { auditFiles, isHalfRecord } from '../log/audit-file.ts'
import { exitStatus, isFileError, textOfFileError } from '../process/process.ts'

interface AuditOptions {
  /** The files; none: those in `paths.log`. Their order does not matter. */
  readonly files: readonly string[]
  /** The `mac` of a record that must be there, as noted earlier, in lower case. */
  readonly head: string | undefined
}

/** Where messages go. */
interface AuditStreams {
  readonly out: (text: string) => void
  readonly problem: (text: string) => void
}

const noKey = 'Cannot check the audit log: there is no app_key, which signs its records. Set it, or SVC_APP_KEY\n'
const wrongKey = 'A record was changed, removed, inserted or swapped, or its key is not in app_key or app_key_previous'

/** Why the records are not accepted. */
class ChainError extends Error {}

/**
 * Checks the records.
 * @param load reads the configuration; rejects with ConfigError
 * @returns the exit status: 0 when all follow each other, 1 when one does not, the head is missing, there are none or a
 *   file cannot be read, 78 for a wrong configuration or without `app_key`
 */
export async function audit(
  load: () => Promise<LoadedConfig>,
  { files, head }: AuditOptions,
  streams: AuditStreams = standardStreams,
): Promise<number> {
  try {
    const { config, folder } = await load()
    const chosen = chooseAppKey(config)
    if (!chosen.isLasting) {
      streams.problem(noKey)
      return exitStatus.config
    }
    const logFolder = resolve(folder, config['paths.log'])
    const paths = files.length > 0 ? files.map((file) => resolve(file)) : auditFiles(logFolder).map(({ path }) => path)
    const check = new AuditCheck(new AuditChain(auditKeysOf(config, chosen).keys), head, streams.problem)
    for (const path of await inOrder(paths)) await check.file(path)
    streams.out(check.end(files.length > 0 ? files.join(', ') : logFolder))
    return exitStatus.ok
  } catch (error) {
    if (isFileError(error)) {
      streams.problem(textOfFileError(error))
      return exitStatus.config
    }
    streams.problem(`${reasonOf(error)}\n`) // Of the chain, or of the file system.
    return exitStatus.failed
  }
}

const standardStreams: AuditStreams = {
  out: (text) => void process.stdout.write(text),
  problem: (text) => void process.stderr.write(text),
}

/** Reads records in order. */
class AuditCheck {
  readonly #chain: AuditChain
  readonly #head: string | undefined
  readonly #note: (text: string) => void
  #first: Link | undefined
  #last: Link | undefined
  #count = 0
  #lost = 0
  /** The number of the record with the wanted head, and whether it follows another. */
  #found: { readonly seq: number; readonly isProven: boolean } | undefined

  constructor(chain: AuditChain, head: string | undefined, note: (text: string) => void) {
    this.#chain = chain
    this.#head = head
    this.#note = note
  }

  /** Checks a file. @throws ChainError, or Error of the file system */
  async file(path: string): Promise<void> {
    let number = 0
    for await (const line of linesOf(path)) {
      number += 1
      const place = `${path}:${number}`
      const record = chainedLineOf(line)
      if (record !== undefined) this.#record(record, place)
      else if (isHalfRecord(line)) this.#note(`${place}: half a record, as a crash leaves it\n`)
      else if (line !== '') throw new ChainError(`${place} is not a record`)
    }
  }

  /** Returns the result. @param read what was read @throws ChainError if there is no record, or not the head */
  end(read: string): string {
    const [first, last] = [this.#first, this.#last]
    if (first === undefined || last === undefined) throw new ChainError(`There is no record in ${read}`)
    if (this.#head !== undefined && this.#found === undefined) {
      throw new ChainError(`No record has the mac ${this.#head}: the last records, or files, are missing`)
    }
    if (this.#found?.isProven === false && last.seq === this.#found.seq) {
      throw new ChainError(`Record ${last.seq} has this mac, but nothing proves it: there is no other record`)
    }
    if (this.#lost > 0) this.#note(`Records that were never written, as on a full disk: ${this.#lost}\n`)
    return `${this.#count} records follow each other, from ${first.seq} to ${last.seq}\nhead ${last.mac}\n`
  }

  #record(record: ChainedLine, place: string): void {
    const before = this.#last ?? beforeFirst
    const isProven = this.#chain.follows(record, before)
    if (isProven) this.#lost += record.seq - before.seq - 1
    else if (this.#last === undefined && record.seq > 1) {
      this.#note(`${place}: record ${record.seq} is the first: nothing proves it, nor those before it\n`)
    } else throw new ChainError(this.#problemOf(record, place))
    this.#first ??= record
    this.#last = record
    this.#count += 1
    if (record.mac === this.#head) this.#found = { seq: record.seq, isProven }
  }

  #problemOf(record: ChainedLine, place: string): string {
    if (this.#last === undefined) return `${place}: record ${record.seq} is not genuine. ${wrongKey}`
    const problem = `${place}: record ${record.seq} does not follow record ${this.#last.seq}. `
    if (!this.#chain.follows(record, beforeFirst)) return problem + wrongKey
    return `${problem}The log began anew there: its files were removed, or there was no lasting app_key`
  }
}

/** Sorts files by their first record. Those without any come first. */
async function inOrder(paths: readonly string[]): Promise<string[]> {
  const found: { readonly path: string; readonly seq: number }[] = []
  for (const path of paths) found.push({ path, seq: await firstIn(path) })
  return found.sort((a, b) => a.seq - b.seq).map(({ path }) => path)
}

async function firstIn(path: string): Promise<number> {
  for await (const line of linesOf(path)) {
    const record = chainedLineOf(line)
    if (record !== undefined) return record.seq
  }
  return 0
}

async function* linesOf(path: string): AsyncGenerator<string> {
  const file = createReadStream(path)
  const bytes = path.endsWith('.gz') ? pipeline(file, createGunzip(), () => {}) : file // An error ends the loop below.
  let rest = ''
  try {
    for await (const text of bytes.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch (error) {
    throw new Error(`Cannot read ${path}: ${reasonOf(error)}`)
  }
  if (rest !== '') yield rest
}
