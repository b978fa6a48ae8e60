/**
 * Parses cron expressions and finds the next time that matches one, in the local time of the process.
 *
 * A wall time is what a local clock shows, as the milliseconds that the same date and time have in UTC: calendar
 * arithmetic on wall times is free of daylight saving. A wall time occurs at the first moment at which the clock shows
 * it or a later one. So a time that the clock skips occurs when it jumps, and a time that it repeats occurs once.
 */

/** A parsed cron expression. */
export interface Cron {
  /**
   * Returns the first matching time later than `afterMs`.
   * @param afterMs milliseconds since 1970, 0 or more
   * @returns milliseconds since 1970
   * @throws RangeError for a time without a date, such as NaN
   */
  next(afterMs: number): number
}

/** The values of a field. */
interface Rule {
  readonly name: string
  readonly min: number
  readonly max: number
  /** Names for the values from `min` on. */
  readonly names: readonly string[]
  /** The values, for messages. */
  readonly values: string
}

/** What a cron expression selects. */
interface Selection {
  /** In minutes from the start of the day, ascending. */
  readonly times: readonly number[]
  readonly days: ReadonlySet<number>
  /** From 1. */
  readonly months: ReadonlySet<number>
  /** 0 to 6, from Sunday. */
  readonly weekdays: ReadonlySet<number>
  /** Whether the day of month or the day of week suffices; otherwise both must match. */
  readonly either: boolean
}

const minuteMs = 60_000
const dayMs = 86_400_000
/** The longest time between two matches is 40 years: 29 February on the same day of the week, across the year 2100. */
const searchMs = 41 * 366 * dayMs

const minuteRule: Rule = { name: 'minute', min: 0, max: 59, names: [], values: '0 to 59' }
const hourRule: Rule = { name: 'hour', min: 0, max: 23, names: [], values: '0 to 23' }
const dayRule: Rule = { name: 'day of month', min: 1, max: 31, names: [], values: '1 to 31' }
const monthRule: Rule = {
  name: 'month',
  min: 1,
  max: 12,
  names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  values: '1 to 12 or jan to dec',
}
const weekdayRule: Rule = {
  name: 'day of week',
  min: 0,
  max: 7,
  names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'],
  values: '0 to 7 (0 and 7 are Sunday) or sun to sat',
}

/** An entry of a field: `*` or its first and last value, then its step. */
const entryForm = /^(?:\*|(\w+)(?:-(\w+))?)(?:\/(\d{1,2}))?$/

/**
 * Parses a cron expression: minute, hour, day of month, month and day of week, separated by white space. Each field is
 * a value, a range `a-b`, `*` for all, or a list of these with commas. A step `/n` may follow a range or `*`. If
 * neither the day of month nor the day of week begins with `*`, one of them suffices; otherwise both must match.
 *
 * @throws RangeError for any other text and for a day that never comes; its message follows the word `cron`
 */
export function parseCron(text: string): Cron {
  const selection = parseSelection(text)
  if (nextWall(selection, 0) === undefined) {
    throw new RangeError(`has a day that never comes: ${JSON.stringify(text)}: name a day that its months have`)
  }
  return { next: (afterMs) => nextTime(selection, afterMs) }
}

function parseSelection(text: string): Selection {
  const fields = text.match(/\S+/g) ?? []
  if (fields.length !== 5) {
    const must = 'must have five fields (minute, hour, day of month, month, day of week)'
    throw new RangeError(`${must}: it has ${fields.length}: ${JSON.stringify(text)}`)
  }
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields
  const minutes = ascending(parseField(minuteRule, minute))
  const hours = ascending(parseField(hourRule, hour))
  return {
    times: hours.flatMap((of) => minutes.map((past) => of * 60 + past)),
    days: new Set(parseField(dayRule, day)),
    months: new Set(parseField(monthRule, month)),
    weekdays: new Set(parseField(weekdayRule, weekday).map((value) => value % 7)),
    either: !day.startsWith('*') && !weekday.startsWith('*'),
  }
}

function ascending(values: readonly number[]): number[] {
  return [...new Set(values)].sort((a, b) => a - b)
}

/** Returns the values of a field, in the order of its entries; some may occur twice. */
function parseField(rule: Rule, field: string): number[] {
  return field.split(',').flatMap((entry) => {
    const values = parseEntry(rule, entry)
    if (values !== undefined) return values
    const forms = `* for all, a range from low to high, a step such as */2 (1 to ${rule.max}) or a list with commas`
    const problem = `has a wrong ${rule.name}: ${JSON.stringify(field)}`
    throw new RangeError(`${problem}: it must be ${rule.values}, ${forms}`)
  })
}

function parseEntry(rule: Rule, entry: string): number[] | undefined {
  const match = entryForm.exec(entry)
  if (match === null) return undefined
  const [, first, last, stepText] = match
  // A step needs a range: in 5/10, some read a range to the end, others the single value.
  if (first !== undefined && last === undefined && stepText !== undefined) return undefined
  const low = first === undefined ? rule.min : valueOf(rule, first)
  const high = first === undefined ? rule.max : valueOf(rule, last ?? first)
  const step = Number(stepText ?? 1)
  // Written so that NaN is refused.
  const valid = low >= rule.min && low <= high && high <= rule.max && step >= 1 && step <= rule.max
  if (!valid) return undefined
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, index) => low + index * step)
}

/** Returns the number that a word stands for; NaN if it is neither a number of at most two digits nor a name. */
function valueOf(rule: Rule, word: string): number {
  const index = rule.names.indexOf(word.toLowerCase())
  if (index >= 0) return rule.min + index
  return /^\d{1,2}$/.test(word) ? Number(word) : NaN
}

/** Returns the first matching wall time from `fromMs`, a wall time, on; undefined if none follows. */
function nextWall(selection: Selection, fromMs: number): number | undefined {
  let dayStartMs = Math.floor(fromMs / dayMs) * dayMs
  while (dayStartMs < fromMs + searchMs) {
    const date = new Date(dayStartMs)
    if (!selection.months.has(date.getUTCMonth() + 1)) {
      dayStartMs = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
      continue
    }
    if (isDaySelected(selection, date)) {
      const startMs = dayStartMs
      const time = selection.times.find((minutes) => startMs + minutes * minuteMs >= fromMs)
      if (time !== undefined) return dayStartMs + time * minuteMs
    }
    dayStartMs += dayMs
  }
  return undefined
}

function isDaySelected({ days, weekdays, either }: Selection, date: Date): boolean {
  const [day, weekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())]
  return either ? day || weekday : day && weekday
}

function nextTime(selection: Selection, afterMs: number): number {
  let fromMs = Math.floor(wallOf(afterMs) / minuteMs + 1) * minuteMs
  for (;;) {
    const wallMs = nextWall(selection, fromMs)
    if (wallMs === undefined) throw new RangeError(`no date for a time after ${afterMs} ms: use a valid time`)
    const timeMs = timeOf(wallMs)
    if (timeMs > afterMs) return timeMs
    // The clock was put back and shows this wall time again: it has occurred before.
    fromMs = wallMs + minuteMs
  }
}

/** Returns the wall time of a moment, without milliseconds. */
function wallOf(timeMs: number): number {
  const date = new Date(timeMs)
  const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()]
  return Date.UTC(year, month, day, date.getHours(), date.getMinutes(), date.getSeconds())
}

/** Returns the moment at which a wall time occurs. */
function timeOf(wallMs: number): number {
  const wall = new Date(wallMs)
  const [year, month, day] = [wall.getUTCFullYear(), wall.getUTCMonth(), wall.getUTCDate()]
  // Date takes a repeated time as the first of the two, and a skipped one with the offset before the jump. So a skipped
  // one yields a moment after the jump, and the same moment less the jump's length lies before it.
  let afterJumpMs = new Date(year, month, day, wall.getUTCHours(), wall.getUTCMinutes()).getTime()
  let beforeJumpMs = afterJumpMs - (wallOf(afterJumpMs) - wallMs)
  while (afterJumpMs - beforeJumpMs > 1) {
    const middleMs = Math.floor((beforeJumpMs + afterJumpMs) / 2)
    if (wallOf(middleMs) < wallMs) beforeJumpMs = middleMs
    else afterJumpMs = middleMs
  }
  return afterJumpMs
}
