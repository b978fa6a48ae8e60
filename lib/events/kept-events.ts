/**
 * Persists the events of the in-memory broker across a planned restart: the stop writes them to the file `events` in
 * the cache folder, the next start restores them, and removes the file once the server listens. So after a crash there
 * is no file, and clients get a gap: restoring the same file twice would reuse ids.
 *
 * The first line of the file has its format and the SHA-256 of the rest, a line of JSON for each channel and queue.
 */
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isJsonLine } from '../base/json-text.ts'
import { isObject } from '../base/object.ts'
import type { LogPort } from '../base/ports.ts'
import { isAbortError, reasonOf } from '../base/reason.ts'
import { replaceFile } from '../files/replace-file.ts'
import type { KeptSource, LocalBroker } from './local-broker.ts'

const version = '1'
const format = `svc-events ${version}`
const mostBytes = 64 * 2 ** 20
const writeMs = 5000
/** The bytes of an event in the file besides its text: an estimate for the limit above. */
const overheadBytes = 32

const unreadAdvice = 'to restore them, stop the server, give the file to the user that the server runs as, under its'
  + ' old name, and start the server'

/** The events of one broker, across restarts. */
export class KeptEvents {
  readonly #broker: LocalBroker
  readonly #file: string
  readonly #log: Pick<LogPort, 'info' | 'warn'>
  readonly #mostMs: number
  #isRestored = false
  #served = false

  /**
   * @param folder `paths.cache`
   * @param mostMs how long the stop waits for the disk
   */
  constructor(broker: LocalBroker, folder: string, log: Pick<LogPort, 'info' | 'warn'>, mostMs = writeMs) {
    this.#broker = broker
    this.#file = join(folder, 'events')
    this.#log = log
    this.#mostMs = mostMs
  }

  /** Restores the events of the last run. Call it before anything is published. */
  restore(): void {
    let content
    try {
      content = readFileSync(this.#file, 'utf8')
    } catch (error) {
      const exists = (error as NodeJS.ErrnoException).code !== 'ENOENT'
      if (exists) this.#setAside('unread', `${reasonOf(error)}; ${unreadAdvice}`)
      return
    }
    const [first = '', ...lines] = content.split('\n')
    const text = content.slice(first.length + 1)
    const other = /^svc-events (\d+) [0-9a-f]{64}$/.exec(first)?.[1]
    if (other !== undefined && other !== version) {
      const formats = `in format ${other}; this one reads format ${version}`
      return this.#setAside('other-version', `another version of svc wrote it, ${formats}`)
    }
    if (first !== `${format} ${sumOf(text)}`) return this.#setAside('damaged', 'it is damaged')
    const sources = sourcesIn(lines.slice(0, -1))
    if (sources === undefined) return this.#setAside('damaged', 'it has content that svc does not write')
    this.#broker.restore(sources)
    this.#isRestored = true
    this.#log.info(`restored from the last run: ${countOf(sources)}`)
  }

  /** Removes the restored file. Call it once the server listens. */
  served(): void {
    this.#served = true
    if (!this.#isRestored) return
    try {
      rmSync(this.#file, { force: true })
    } catch (error) {
      this.#log.warn(`Cannot remove ${this.#file}, from which the events were restored: ${reasonOf(error)}; remove it`)
    }
  }

  /** Writes the file, unless the server never served. Call it when publishing has ended; never rejects. */
  async save(): Promise<void> {
    const sources = this.#served ? this.#broker.contents() : []
    if (sources.length === 0) return
    const dropped = dropOldest(sources)
    if (dropped > 0) this.#log.warn(`dropped ${dropped} events: a restart keeps at most ${mostBytes / 2 ** 20} MiB`)
    const text = sources.map((source) => `${JSON.stringify(source)}\n`).join('') // An Infinity becomes null.
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
      const options = { flag: 'wx', mode: 0o600, signal: AbortSignal.timeout(this.#mostMs) }
      await replaceFile(this.#file, (temporary) => writeFile(temporary, `${format} ${sumOf(text)}\n${text}`, options))
      this.#log.info(`kept for the next start: ${countOf(sources)}`)
    } catch (error) {
      const reason = isAbortError(error) ? `the disk took longer than ${this.#mostMs / 1000} s` : reasonOf(error)
      this.#log.warn(`Cannot keep the events in ${this.#file}: ${reason}; clients get a gap`)
    }
  }

  #setAside(ending: 'damaged' | 'other-version' | 'unread', reason: string): void {
    const aside = `${this.#file}.${ending}`
    let outcome = `it is ${aside} now`
    try {
      renameSync(this.#file, aside)
    } catch (error) {
      outcome = `it cannot be set aside: ${reasonOf(error)}`
    }
    this.#log.warn(`Cannot restore the events in ${this.#file}: ${reason}; clients get a gap; ${outcome}`)
  }
}

/** Parses the lines of a file with a valid checksum; undefined if {@link KeptEvents} does not write such a line. */
function sourcesIn(lines: readonly string[]): KeptSource[] | undefined {
  try {
    const sources = lines.map((line) => sourceIn(JSON.parse(line)))
    return sources.every((source) => source !== undefined) ? sources : undefined
  } catch {
    return undefined
  }
}

function sourceIn(value: unknown): KeptSource | undefined {
  if (!isObject(value) || !isObject(value['limits']) || !Array.isArray(value['events'])) return undefined
  const { kind, name, limits: { maxEvents, maxAgeMs }, lastId, events } = value
  const isSource = (kind === 'channel' || kind === 'queue') && typeof name === 'string' && isFrom(lastId, 0)
  // The age is 0 before the first event, and null stands for Infinity.
  const isLimited = isFrom(maxEvents, 1) && (maxAgeMs === null || (typeof maxAgeMs === 'number' && maxAgeMs >= 0))
  if (!isSource || !isLimited || !events.every(isEvent)) return undefined
  return { kind, name, limits: { maxEvents, maxAgeMs: maxAgeMs ?? Infinity }, lastId, events }
}

function isFrom(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least
}

function isEvent(value: unknown): value is KeptSource['events'][number] {
  if (!isObject(value)) return false
  const { text, at } = value
  return Number.isFinite(at) && typeof text === 'string' && isJsonLine(text)
}

/** Drops the oldest events past the byte limit. Returns their number. */
function dropOldest(sources: readonly KeptSource[]): number {
  const newestFirst = sources.flatMap(({ events }) => events.toReversed()).sort((a, b) => b.at - a.at)
  let bytes = 0
  const tooOld = newestFirst.findIndex(({ text }) => (bytes += Buffer.byteLength(text) + overheadBytes) > mostBytes)
  if (tooOld < 0) return 0
  const kept = new Set(newestFirst.slice(0, tooOld))
  for (const { events } of sources) {
    let at = 0
    for (const event of events) if (kept.has(event)) events[at++] = event
    events.length = at
  }
  return newestFirst.length - tooOld
}

function sumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function countOf(sources: readonly KeptSource[]): string {
  const count = sources.reduce((sum, { events }) => sum + events.length, 0)
  return `${count} events in ${sources.length} channels and queues`
}
