/**
 * The parts of log lines: times, and messages without control characters.
 *
 * A clock caches the text of its last second and its last millisecond, so most lines format no time at all.
 */

/** Returns the text of a time in milliseconds since 1970. Times may go backwards from call to call. */
type Clock = (nowMs: number) => string

const controls = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/
const eachControl = new RegExp(controls, 'g')
const needsJson = /[^\x20\x21\x23-\x5b\x5d-\x7e]/
const jsonControls = /[\x7f-\x9f\u2028\u2029]/
const eachJsonControl = new RegExp(jsonControls, 'g')
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/** The text with every control character (C0, DEL, C1, U+2028, U+2029) written as `\xNN` or `\uNNNN`. */
export function escapeControls(text: string): string {
  return controls.test(text) ? text.replace(eachControl, escapeCharacter) : text
}

/** A copy of the beginning of a text. A slice would keep the whole text in memory. */
export function copyOf(text: string, most: number): string {
  return Buffer.from(text.slice(0, most)).toString()
}

/** `\xNN` for a character below 256, `\uNNNN` for any other, in lower-case hexadecimal. */
export function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0)
  return code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`
}

/** The text as a JSON string (RFC 8259) with DEL, C1, U+2028 and U+2029 escaped as well. */
export function jsonString(text: string): string {
  return needsJson.test(text) ? escapeInJson(JSON.stringify(text)) : `"${text}"`
}

/** A JSON text with DEL, C1, U+2028 and U+2029 escaped as well. */
export function escapeInJson(json: string): string {
  return jsonControls.test(json) ? json.replace(eachJsonControl, (each) => `\\u${hex(each.charCodeAt(0), 4)}`) : json
}

/** A clock of local time to the millisecond: `2026-11-20 11:27:00.123`. */
export function createTextClock(): Clock {
  return createMillisecondClock(' ', () => '')
}

/** A clock of local time with its offset (RFC 3339): `2026-11-20T11:27:00.123+01:00`. */
export function createJsonClock(): Clock {
  return createMillisecondClock('T', (ms) => offset(offsetOf(ms), ':'))
}

/** A clock of local time to the second, as the Common Log Format has it: `20/Nov/2026:11:27:00 +0100`. */
export function createAccessClock(): Clock {
  return remembering(1000, (ms) => {
    const [year, month, day, time] = localTime(ms).split(/[-T]/)
    return `${day}/${months[Number(month) - 1]}/${year}:${time} ${offset(offsetOf(ms), '')}`
  })
}

/** The local time as 14 digits, `YYYYMMDDHHMMSS`. */
export function compactTime(nowMs: number): string {
  return localTime(nowMs).replace(/\D/g, '')
}

function createMillisecondClock(separator: string, tail: (ms: number) => string): Clock {
  const headAt = remembering(1000, (ms) => localTime(ms).replace('T', separator))
  const tailAt = remembering(1000, tail)
  return remembering(1, (ms) => `${headAt(ms)}.${digits(ms % 1000, 3)}${tailAt(ms)}`)
}

/** Renders a time once for each unit of this many milliseconds. */
function remembering(unitMs: number, render: (nowMs: number) => string): Clock {
  let last = Number.NaN
  let text = ''
  return (nowMs) => {
    const unit = Math.floor(nowMs / unitMs)
    if (unit !== last) {
      last = unit
      text = render(unit * unitMs)
    }
    return text
  }
}

/** `2026-11-20T11:27:00` */
function localTime(ms: number): string {
  return new Date(ms + offsetOf(ms) * 60_000).toISOString().slice(0, 19)
}

/** The minutes by which local time is ahead of UTC. */
function offsetOf(ms: number): number {
  return -new Date(ms).getTimezoneOffset()
}

function offset(minutes: number, separator: string): string {
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${digits(Math.trunc(size / 60), 2)}${separator}${digits(size % 60, 2)}`
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0')
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0')
}
