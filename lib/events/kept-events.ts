/**
 * Keeps the events of the broker in memory over a planned restart: at the stop they go to the file `events` in the
 * cache folder, the next start takes them up, and the file goes when that server listens. So after a crash there is
 * none, and clients are told of a gap: a file that was taken up before would give ids a second time.
 *
 * The file begins with a line: its format and the SHA-256 of what follows, a line of JSON for each channel and queue.
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
/** How many bytes an event takes in the file, on top of its text: an estimate for the limit above. */
const bytesBeside = 32

const unreadAdvice = 'to have its events, stop the server, give the file to the user that the server runs as, under the'
  + ' name it had, and start it'

/** The events of one broker, over restarts. */
export class KeptEvents {
  readonly #broker: LocalBroker
  readonly #file: string
  readonly #log: Pick<LogPort, 'info' | 'warn'>
  readonly #mostMs: number
  #isTakenUp = false
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

  /** Takes up what the last run has kept. Call it before anything is published. */
  takeUp(): void {
    let content
    try {
      content = readFileSync(this.#file, 'utf8')
    } catch (error) {
      const isThere = (error as NodeJS.ErrnoException).code !== 'ENOENT'
      if (isThere) this.#setAside('unread', `${reasonOf(error)}; ${unreadAdvice}`)
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
    this.#broker.takeUp(sources)
    this.#isTakenUp = true
    this.#log.info(`taken up from the last run: ${countOf(sources)}`)
  }

  /** Removes the file that was taken up. Call it when the server listens. */
  served(): void {
    this.#served = true
    if (!this.#isTakenUp) return
    try {
      rmSync(this.#file, { force: true })
    } catch (error) {
      this.#log.warn(`Cannot remove ${this.#file}, from which the events were taken up: ${reasonOf(error)}; remove it`)
    }
  }

  /** Writes the file, unless the server has never served. Call it when nothing is published any more; never rejects. */
  async save(): Promise<void> {
    const sources = this.#served ? this.#broker.contents() : []
    if (sources.length === 0) return
    const dropped = dropOldest(sources)
    if (dropped > 0) this.#log.warn(`${dropped} events are not kept over the restart: ${mostBytes / 2 ** 20} MiB are`)
    const text = sources.map((source) => `${JSON.stringify(source)}\n`).join('') // An Infinity becomes null.
    try {
      await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
      const options = { flag: 'wx', mode: 0o600, signal: AbortSignal.timeout(this.#mostMs) }
      await replaceFile(this.#file, (temporary) => writeFile(temporary, `${format} ${sumOf(text)}\n${text}`, options))
      this.#log.info(`kept for the next start: ${countOf(sources)}`)
    } catch (error) {
      const reason = isAbortError(error) ? `the disk took longer than ${this.#mostMs / 1000} s` : reasonOf(error)
      this.#log.warn(`Cannot keep the events in ${this.#file}: ${reason}; clients are told of a gap`)
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
    this.#log.warn(`Cannot take up the events in ${this.#file}: ${reason}; clients are told of a gap; ${outcome}`)
  }
}

/** Parses the lines of a file whose checksum is right; undefined when a line is none that {@link KeptEvents} writes. */
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
  const isLimited = isFrom(maxEvents, 1) && (maxAgeMs === null || (typeof maxAgeMs === 'number' && maxAgeMs > 0))
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

/** Drops the oldest events past the most bytes. Returns their number. */
function dropOldest(sources: readonly KeptSource[]): number {
  const newestFirst = sources.flatMap(({ events }) => events.toReversed()).sort((a, b) => b.at - a.at)
  let bytes = 0
  const tooOld = newestFirst.findIndex(({ text }) => (bytes += Buffer.byteLength(text) + bytesBeside) > mostBytes)
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
  return `${count} events of ${sources.length} channels and queues`
}
