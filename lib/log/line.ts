/**
 * The parts of log lines: times, and messages without control characters.
 *
 * A clock keeps the text of its last second and its last millisecond, so most lines format no time at all.
 */

/** Returns the text of a time in milliseconds since 1970. Times may go back. */
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

/** `\xNN` for a character below 256, `\uNNNN` for any other, in lower-case hexadecimal. */
export function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0)
  return code < 256 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`
}

/** The text as a JSON string (RFC 8259) in which DEL, C1, U+2028 and U+2029 are escaped as well. */
export function jsonString(text: string): string {
  if (!needsJson.test(text)) return `"${text}"`
  const json = JSON.stringify(text)
  return jsonControls.test(json) ? json.replace(eachJsonControl, (each) => `\\u${hex(each.charCodeAt(0), 4)}`) : json
}

/** A clock of local time to the millisecond: `2026-11-20 11:27:00.123`. */
export function createTextClock(): Clock {
  return createMillisecondClock((date) => `${day(date)} ${time(date)}`, () => '')
}

/** A clock of local time with its offset (RFC 3339): `2026-11-20T11:27:00.123+01:00`. */
export function createJsonClock(): Clock {
  return createMillisecondClock((date) => `${day(date)}T${time(date)}`, (date) => offset(date, ':'))
}

/** A clock of local time to the second, as the Common Log Format has it: `20/Nov/2026:11:27:00 +0100`. */
export function createAccessClock(): Clock {
  return createSecondClock((date) => {
    const month = months[date.getMonth()]
    return `${digits(date.getDate(), 2)}/${month}/${year(date)}:${time(date)} ${offset(date, '')}`
  })
}

/** The local time as 14 digits, `YYYYMMDDHHMMSS`. */
export function compactTime(nowMs: number): string {
  const date = new Date(nowMs)
  return `${day(date)}${time(date)}`.replace(/[-:]/g, '')
}

function createMillisecondClock(head: (date: Date) => string, tail: (date: Date) => string): Clock {
  const headAt = createSecondClock(head)
  const tailAt = createSecondClock(tail)
  let lastMs = Number.NaN
  let text = ''
  return (nowMs) => {
    if (nowMs !== lastMs) {
      lastMs = nowMs
      text = `${headAt(nowMs)}.${digits(Math.floor(nowMs) % 1000, 3)}${tailAt(nowMs)}`
    }
    return text
  }
}

function createSecondClock(render: (date: Date) => string): Clock {
  let lastSecond = Number.NaN
  let text = ''
  return (nowMs) => {
    const second = Math.floor(nowMs / 1000)
    if (second !== lastSecond) {
      lastSecond = second
      text = render(new Date(second * 1000))
    }
    return text
  }
}

function day(date: Date): string {
  return `${year(date)}-${digits(date.getMonth() + 1, 2)}-${digits(date.getDate(), 2)}`
}

function year(date: Date): string {
  return digits(date.getFullYear(), 4)
}

function time(date: Date): string {
  return `${digits(date.getHours(), 2)}:${digits(date.getMinutes(), 2)}:${digits(date.getSeconds(), 2)}`
}

function offset(date: Date, separator: string): string {
  const minutes = -date.getTimezoneOffset()
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${digits(Math.trunc(size / 60), 2)}${separator}${digits(size % 60, 2)}`
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0')
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0')
}
