/**
 * Checks the options of a field when it is defined, so that a mistake fails at start-up and not in a request.
 */
import { inspect } from 'node:util'
import { didYouMean } from '../base/nearest.ts'

/** The options of a field. Bounds are inclusive; those of a text and a list are lengths. */
export interface Options<Bound = number> {
  readonly min?: Bound | undefined
  readonly max?: Bound | undefined
  readonly pattern?: RegExp | undefined
  readonly trim?: boolean | undefined
  readonly types?: readonly string[] | undefined
  readonly maxKb?: number | undefined
}

/** Returns what an option must be: `must be ...`; undefined when it is valid. */
type Check = (value: unknown) => string | undefined

const count: Check = (value) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? undefined : 'must be a whole number from 0'
const number: Check = (value) => (Number.isFinite(value) ? undefined : 'must be a number')
const day: Check = (value) =>
  typeof value === 'string' && isDate(value) ? undefined : 'must be a day that exists, as YYYY-MM-DD'
const flag: Check = (value) => (typeof value === 'boolean' ? undefined : 'must be true or false')
const textOptions = { min: count, max: count, pattern: problemOfPattern }

const optionsOf = {
  text: { ...textOptions, trim: flag },
  secret: textOptions,
  email: textOptions,
  url: textOptions,
  integer: { min: number, max: number },
  number: { min: number, max: number },
  boolean: {},
  date: { min: day, max: day },
  list: { min: count, max: count },
  file: { types: problemOfTypes, maxKb: count },
} as const

/** The days of each month in a common year. */
const daysOfMonths: readonly number[] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
const mediaTypeShape = /^[a-z0-9_!#$&^.+-]+\/(?:\*|[a-z0-9_!#$&^.+-]+)$/

/**
 * Checks the options of a field.
 * @returns the options
 * @throws TypeError for an unknown or wrong option, and where `min` is above `max`
 */
export function checkOptions<T extends object>(kind: keyof typeof optionsOf, options: T): T {
  if (typeof options !== 'object' || options === null) {
    throw wrongField(kind, `its options must be an object: it is ${shown(options)}`)
  }
  const checks: Readonly<Record<string, Check>> = optionsOf[kind]
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(checks, name) ? checks[name] : undefined
    if (check === undefined) throw wrongField(kind, unknownOption(name, Object.keys(checks)))
    const problem = value === undefined ? undefined : check(value)
    if (problem !== undefined) throw wrongField(kind, `${name} ${problem}: it is ${shown(value)}`)
  }
  const { min, max } = options as Options<number | string> // They have just been checked.
  if (min === undefined || max === undefined || min <= max) return options
  throw wrongField(kind, `min must not be above max: min is ${shown(min)}, max is ${shown(max)}`)
}

/** Whether a text is an existing day, `YYYY-MM-DD`, from year 1. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const year = Number(text.slice(0, 4))
  const month = Number(text.slice(5, 7))
  const day = Number(text.slice(8))
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 && isLeap ? 29 : (daysOfMonths[month - 1] ?? 0)
  return year > 0 && day > 0 && day <= days
}

/** The error for an invalid definition. */
export function wrongField(kind: string, problem: string): TypeError {
  return new TypeError(`Cannot define ${kind === '' ? 'fields({...})' : `fields.${kind}`}: ${problem}`)
}

/** A value as a message shows it. */
export function shown(value: unknown): string {
  const text = inspect(value, { depth: 0, breakLength: Infinity })
  return text.length > 80 ? `${text.slice(0, 80)}...` : text
}

function unknownOption(name: string, known: readonly string[]): string {
  if (known.length === 0) return `it takes no options: it has ${name}`
  return `it has no option ${name}${didYouMean(name, known) || `: it has ${known.join(', ')}`}`
}

/** A stateful pattern (`g`, `y`) would answer differently each time, and `v` changes what a pattern means. */
function problemOfPattern(value: unknown): string | undefined {
  if (!(value instanceof RegExp)) return 'must be a regular expression, such as /^[a-z]+$/'
  return /[gyv]/.test(value.flags) ? 'must have none of the flags g, y and v' : undefined
}

function problemOfTypes(value: unknown): string | undefined {
  const isList = Array.isArray(value) && value.length > 0
  if (isList && value.every((type) => typeof type === 'string' && mediaTypeShape.test(type))) return undefined
  return 'must be a list of media types in lower case, such as image/png or image/*'
}
