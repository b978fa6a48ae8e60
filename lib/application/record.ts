/**
 * Checks route records from route files and the admin API, and normalizes them.
 *
 * All problems of a record are reported at once. An unknown field is a warning, not a problem: a record may contain
 * notes, but a misspelled `methods` should not go unnoticed.
 */
import { isObject } from '../base/object.ts'
import { isToken } from '../base/token.ts'
import { configTable } from '../config/table.ts'
import { METHODS } from '../http/node-http.ts'
import { didYouMean } from '../base/nearest.ts'
import { actionPath, parseAction } from '../routing/action.ts'
import { parsePattern, PatternError, quote, type Pattern } from '../routing/pattern.ts'
import type { ErrorFormat, RouteRecord } from '../routing/route.ts'
import { isAtOrIn } from '../files/paths.ts'

/** The rules that depend on the application. */
export interface RecordRules {
  /** `paths.root`, absolute: actions are below it. */
  readonly root: string
  readonly middlewareKnown: (name: string) => boolean
  /** The names of all middleware, for suggestions in messages. */
  readonly middlewareNames?: () => Iterable<string>
}

/** A valid record. */
export interface GoodRecord {
  readonly record: RouteRecord
  readonly pattern: Pattern
  /** Harmless mistakes. */
  readonly warnings: readonly string[]
}

/** The fields that a record may lack. */
type RecordOptions = Omit<RouteRecord, 'name' | 'url' | 'action' | 'method' | 'middleware' | 'scope'>

/** An invalid record. */
interface BadRecord {
  /** The record's name, or `''`. */
  readonly name: string
  /** True when the name begins with `svc.`: the admin API then answers 400, for other problems 409. */
  readonly reserved: boolean
  /** A message for each problem, at least one. */
  readonly problems: readonly string[]
}

const knownFields = [
  ...['name', 'url', 'pattern', 'action', 'method', 'middleware', 'scope', 'error_format'],
  ...['body_limit_kb', 'request_timeout_s', 'summary', 'description', 'deprecated', 'hidden'],
]
/** Fields that override a key of the configuration, within its limits. */
const numbers = {
  body_limit_kb: configTable['server.body_limit_kb'],
  request_timeout_s: configTable['server.request_timeout_s'],
}
const errorFormats = ['json', 'html', 'auto']
const flags = ['deprecated', 'hidden'] as const
/** In characters: Unicode code points. */
const maxSummaryLength = 200
const maxDescriptionLength = 4_000
const controlCharacter = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/

/**
 * Checks a route record (specification, "Route record").
 * @param value anything that JSON can hold
 */
export function parseRecord(value: unknown, rules: RecordRules): GoodRecord | BadRecord {
  if (!isObject(value)) {
    return { name: '', reserved: false, problems: [`a route record is a JSON object: it is ${kindOf(value)}`] }
  }
  const problems: string[] = []
  const warnings: string[] = []
  const name = readName(value, problems)
  const pattern = readPattern(value, problems)
  const action = readAction(value, rules.root, problems)
  const method = readMethod(value, problems, warnings)
  const middleware = readMiddleware(value, rules, problems)
  const scope = readText(value, 'scope', problems) ?? ''
  const options = { ...readOptions(value, problems), ...readDocumentation(value, problems) }
  for (const field of Object.keys(value)) {
    if (!knownFields.includes(field)) warnings.push(unknownField(field, knownFields))
  }
  if (problems.length > 0 || pattern === undefined) return { name, reserved: name.startsWith('svc.'), problems }
  return { record: { name, url: pattern.text, action, method, middleware, scope, ...options }, pattern, warnings }
}

/** Reads the fields for requests and errors that are present, and adds problems with them to a list. */
function readOptions(fields: Readonly<Record<string, unknown>>, problems: string[]): RecordOptions {
  const { error_format: format } = fields
  const limits: Record<string, number> = {}
  for (const [field, { min, max }] of Object.entries(numbers)) {
    const value = fields[field]
    if (value === undefined) continue
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) limits[field] = value
    else problems.push(`${field} must be ${min} to ${max}: it is ${JSON.stringify(value)}`)
  }
  if (format !== undefined && !errorFormats.includes(format as string)) {
    problems.push(`error_format must be json, html or auto: it is ${JSON.stringify(format)}`)
  }
  return {
    ...limits,
    ...(format !== undefined && { error_format: format as ErrorFormat }), // Checked above.
  }
}

/** Reads the fields for the description of the application that are present. */
function readDocumentation(fields: Readonly<Record<string, unknown>>, problems: string[]): RecordOptions {
  const summary = readText(fields, 'summary', problems)
  const description = readText(fields, 'description', problems)
  if (summary !== undefined && !isSummary(summary)) {
    problems.push(`summary must be one line of 1 to ${maxSummaryLength} characters: it is ${quote(summary)}`)
  }
  const length = [...(description ?? '')].length
  if (length > maxDescriptionLength) {
    problems.push(`description must have at most ${maxDescriptionLength} characters: it has ${length}`)
  }
  const given: Record<string, boolean> = {}
  for (const flag of flags) {
    const value = fields[flag]
    if (typeof value === 'boolean') given[flag] = value
    else if (value !== undefined) problems.push(`${flag} must be true or false: it is ${kindOf(value)}`)
  }
  return { ...(summary !== undefined && { summary }), ...(description !== undefined && { description }), ...given }
}

function isSummary(text: string): boolean {
  const { length } = [...text]
  return length > 0 && length <= maxSummaryLength && !controlCharacter.test(text)
}

/** Reads the name of a record, of a route or of a job; '' if it is missing. Adds what is wrong to the problems. */
export function readName(fields: Readonly<Record<string, unknown>>, problems: string[]): string {
  const name = readRequired(fields, 'name', problems)
  if (name.startsWith('svc.')) {
    problems.push(`name must not begin with "svc.", which is for system routes: it is ${quote(name)}`)
  }
  if (controlCharacter.test(name)) problems.push(`name must not hold control characters: it is ${quote(name)}`)
  if (name !== name.trim()) problems.push(`name must not begin or end with a space: it is ${quote(name)}`)
  return name
}

function readPattern(fields: Readonly<Record<string, unknown>>, problems: string[]): Pattern | undefined {
  const { url, pattern } = fields
  if (url !== undefined && pattern !== undefined && url !== pattern) {
    const values = `${quote(url)} and ${quote(pattern)}`
    problems.push(`url and pattern are two names of one field: give one of them: they are ${values}`)
    return undefined
  }
  const text = readRequired(fields, url === undefined && pattern !== undefined ? 'pattern' : 'url', problems)
  if (text === '') return undefined
  try {
    return parsePattern(text)
  } catch (error) {
    if (!(error instanceof PatternError)) throw error
    problems.push(error.message)
    return undefined
  }
}

/** Reads the action of a record, of a route or of a job, in the same way. @param root `paths.root`, absolute */
export function readAction(fields: Readonly<Record<string, unknown>>, root: string, problems: string[]): string {
  const action = readRequired(fields, 'action', problems)
  if (action === '') return action
  if (controlCharacter.test(action)) {
    problems.push(`action must not hold control characters: it is ${quote(action)}`)
    return action
  }
  try {
    if (isAtOrIn(root, actionPath(root, parseAction(action)))) return action
    problems.push(`action must not be a link that leads out of ${root}: it is ${quote(action)}`)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    problems.push(`action must be a path below ${root}, given relative to it: it is ${quote(action)}`)
  }
  return action
}

function readMethod(fields: Readonly<Record<string, unknown>>, problems: string[], warnings: string[]): string {
  const text = readText(fields, 'method', problems)
  if (text === undefined) return '*'
  if (METHODS.includes(text)) return text
  const methods = new Set(text.split(',').map((method) => method.trim().toUpperCase()))
  for (const method of methods) {
    if (!isToken(method)) {
      problems.push(`method must be * or names such as GET,POST, or be left out: it is ${quote(text)}`)
      break
    }
    if (method !== '*' && !METHODS.includes(method)) {
      warnings.push(`method ${quote(method)} is not one that this server can receive`)
    }
  }
  return methods.has('*') ? '*' : [...methods].join(',')
}

function readMiddleware(fields: Readonly<Record<string, unknown>>, rules: RecordRules, problems: string[]): string {
  const text = readText(fields, 'middleware', problems)?.trim() ?? ''
  if (text === '') return ''
  const names = text.split(',').map((name) => name.trim())
  if (names.includes('')) problems.push(`middleware must be names with a comma between two: it is ${quote(text)}`)
  for (const name of names) {
    if (name !== '' && !rules.middlewareKnown(name)) problems.push(unknownMiddleware(name, rules))
  }
  return names.join(',')
}

function unknownMiddleware(name: string, rules: RecordRules): string {
  return `middleware ${quote(name)} is not known${didYouMean(name, rules.middlewareNames?.() ?? [], quote)}`
}

/** Returns the warning about an unknown field. @param known the fields that a record may have */
export function unknownField(field: string, known: readonly string[]): string {
  return `field ${quote(field)} is not known and is ignored${didYouMean(field, known, quote)}`
}

function readRequired(fields: Readonly<Record<string, unknown>>, field: string, problems: string[]): string {
  if (fields[field] === undefined) problems.push(`${field} is missing`)
  const text = readText(fields, field, problems)
  if (text === '') problems.push(`${field} must not be empty`)
  return text ?? ''
}

function readText(fields: Readonly<Record<string, unknown>>, field: string, problems: string[]): string | undefined {
  const value = fields[field]
  if (typeof value === 'string' || value === undefined) return value
  problems.push(`${field} must be a string: it is ${kindOf(value)}`)
  return undefined
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  return quote(value)
}
