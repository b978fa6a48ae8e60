/** Checks the arguments of `enqueue`. */
import type { EnqueueOptions } from 'svc'
import { jsonText } from '../base/json-text.ts'
import { didYouMean } from '../base/nearest.ts'
import { quote } from '../routing/pattern.ts'
import type { NewJob } from './job-store.ts'

const maxDataBytes = 262_144
const maxKeyLength = 200
const maxDelayS = 315_360_000
const optionNames = ['delay_s', 'at', 'key']
/** ISO 8601 with a zone: without one, the time would depend on the machine. */
const isoWithZone = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/

/**
 * Makes a job of the arguments of `enqueue`.
 * @param names the names of all jobs
 * @param nowMs milliseconds since 1970
 * @throws TypeError for a value of a wrong type and for data that JSON cannot hold; RangeError for data over 256 KiB
 *   and values out of range; Error when no job has the name
 */
export function newJobOf(
  names: ReadonlySet<string>,
  name: unknown,
  data: unknown,
  options: EnqueueOptions | undefined,
  nowMs: number,
): NewJob {
  if (typeof name !== 'string' || !names.has(name)) {
    const advice = typeof name === 'string' ? didYouMean(name, names, quote) : ''
    throw new Error(`Cannot enqueue ${quote(name)}: no job file has a job of this name${advice}`)
  }
  const cannot = `Cannot enqueue ${quote(name)}`
  const text = data === undefined ? null : jsonText(data, `${cannot}: JSON cannot hold its data`)
  const bytes = Buffer.byteLength(text ?? '')
  if (bytes > maxDataBytes) {
    const advice = 'store it elsewhere and pass its name'
    throw new RangeError(`${cannot}: its data must be at most ${maxDataBytes} bytes of JSON: it is ${bytes}: ${advice}`)
  }
  if (typeof (options ?? {}) !== 'object') throw new TypeError(`${cannot}: its options must be an object`)
  const { delay_s: delayS, at, key = null, ...others } = options ?? {}
  for (const other of Object.keys(others)) {
    throw new TypeError(`${cannot}: it has no option ${quote(other)}${didYouMean(other, optionNames, quote)}`)
  }
  if (key !== null && !isKey(key)) {
    const must = `must be well-formed text of 1 to ${maxKeyLength} characters`
    throw new TypeError(`${cannot}: key ${must}: it is ${quote(key)}`)
  }
  if (delayS !== undefined && at !== undefined) throw new TypeError(`${cannot}: delay_s and at exclude each other`)
  return { name, data: text, key, at: delayS === undefined ? timeOf(at, cannot) : nowMs + delayOf(delayS, cannot) }
}

function isKey(key: unknown): key is string {
  return typeof key === 'string' && key !== '' && key.length <= maxKeyLength && key.isWellFormed()
}

function delayOf(delayS: unknown, cannot: string): number {
  if (typeof delayS === 'number' && delayS >= 0 && delayS <= maxDelayS) return Math.round(delayS * 1000)
  throw new RangeError(`${cannot}: delay_s must be 0 to ${maxDelayS}: it is ${quote(delayS)}`)
}

function timeOf(at: unknown, cannot: string): number | null {
  if (at === undefined) return null
  const ms = at instanceof Date ? at.getTime() : typeof at === 'string' && isTime(at) ? Date.parse(at) : NaN
  if (Number.isFinite(ms)) return ms
  const forms = 'a valid Date, or ISO 8601 text with a zone, such as 2026-12-24T18:00:00+01:00'
  throw new TypeError(`${cannot}: at must be ${forms}: it is ${at instanceof Date ? 'an invalid Date' : quote(at)}`)
}

/** Whether a text is ISO 8601 with a zone, of a day that exists: `Date.parse` takes 30 February for 2 March. */
function isTime(text: string): boolean {
  const [, year, month, day] = isoWithZone.exec(text) ?? []
  return Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
}
