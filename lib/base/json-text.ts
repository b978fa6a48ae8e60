/**
 * Converts a value that is stored or sent as JSON: in a session or a flash bag, as an event, as a member of presence.
 *
 * `JSON.stringify` silently drops what JSON cannot hold: a Map becomes `{}`, NaN becomes null. This would be noticed
 * only when the value is read, so it is refused here. The text is made first and the value checked afterwards: a
 * replacer function would take several times as long.
 */
import { isError, reasonOf } from './reason.ts'

/** The problem with a value, or with something in it. */
interface Problem {
  /** The path of members, such as `lines.0.total`; empty for the value itself. */
  readonly path: string
  /** The end of a sentence: `is a Map: ...`. */
  readonly reason: string
}

/**
 * Returns the JSON of a value. `toJSON` is respected: a Date becomes a string. Undefined members of objects are
 * omitted.
 * @param refused the beginning of the message
 * @throws TypeError, with the path, for a value that JSON cannot hold, at any depth: undefined except as a member, a
 *   function, a symbol, a bigint, a number that is not finite, an invalid Date, a promise, a circular structure, and
 *   objects whose content is not in their members, such as a Map, a Set, a RegExp and an Error
 */
export function jsonText(value: unknown, refused: string): string {
  let text: string | undefined
  let problem: Problem | undefined
  try {
    text = JSON.stringify(value)
    problem = problemIn(value)
  } catch (error) {
    throw new TypeError(`${refused}: ${reasonOf(error)}`, { cause: error })
  }
  if (problem === undefined && text !== undefined) return text
  const { path, reason } = problem ?? { path: '', reason: 'has no JSON text' }
  throw new TypeError(`${refused}: ${path === '' ? 'it' : path} ${reason}`)
}

function problemIn(value: unknown): Problem | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : { path: '', reason: `is ${value}` }
    case 'object':
      return value === null ? undefined : problemInObject(value)
    case 'undefined':
    case 'function':
    case 'symbol':
      return { path: '', reason: `is of type ${typeof value}` }
    default:
      return undefined
  }
}

function problemInObject(value: object): Problem | undefined {
  const { then, toJSON } = value as { readonly then?: unknown; readonly toJSON?: unknown }
  if (typeof then === 'function') return { path: '', reason: 'is a promise: await it' }
  if (value instanceof Date && Number.isNaN(value.getTime())) return { path: '', reason: 'is an invalid Date' }
  if (typeof toJSON === 'function') return problemIn(toJSON.call(value, ''))
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at += 1) {
      const problem = problemIn(value[at])
      if (problem !== undefined) return below(String(at), problem)
    }
    return undefined
  }
  const keys = Object.keys(value)
  if (hidesContent(value, keys)) {
    const advice = 'whose content JSON cannot hold: use an object, a list or a string'
    return { path: '', reason: `is of class ${value.constructor?.name ?? 'unknown'}, ${advice}` }
  }
  for (const key of keys) {
    const member = (value as Readonly<Record<string, unknown>>)[key]
    const problem = member === undefined ? undefined : problemIn(member)
    if (problem !== undefined) return below(key, problem)
  }
  return undefined
}

function below(key: string, { path, reason }: Problem): Problem {
  return { path: path === '' ? key : `${key}.${path}`, reason }
}

/** Whether the content of an object is not in its members, such as a Map or private fields. */
function hidesContent(value: object, keys: readonly string[]): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return false
  if (value instanceof Map || value instanceof Set || value instanceof RegExp || isError(value)) return true
  const isPrimitive = value instanceof String || value instanceof Number || value instanceof Boolean
  // The prototype of a plain object from another realm has no prototype itself.
  return keys.length === 0 && !isPrimitive && Object.getPrototypeOf(prototype) !== null
}

/** Whether a text is JSON without line breaks, as required for events: a stream sends each event on one line. */
export function isJsonLine(text: string): boolean {
  if (/[\r\n]/.test(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
