/**
 * Maps the keys of a session to the fields of a store, and values to strings.
 *
 * The key `_flash` is not a single field: each of its form ids is a separate field, so that concurrent requests do not
 * undo each other's form ids.
 */
import { jsonText } from '../base/json-text.ts'
import { isObject } from '../base/object.ts'
import type { Fields } from './store.ts'

/** The key of the flash messages: a map of form ids to bags. */
export const flashKey = '_flash'

/** The key of the CSRF token. */
export const csrfTokenKey = '_csrf_token'

const keyPrefix = 'key:'
const flashPrefix = 'flash:'

/** Returns the field of a key. Throws TypeError for a non-string and for `_flash`, which only `flash(id)` changes. */
export function fieldOf(key: unknown): string {
  if (typeof key !== 'string') throw new TypeError(`A session key must be a string: it is ${typeof key}`)
  if (key === flashKey) throw new TypeError(`Cannot change key "${flashKey}" of the session: use flash(id)`)
  return keyPrefix + key
}

/** Returns the field of a form id in `_flash`. It differs from the field of any key. */
export function flashFieldOf(formId: string): string {
  return flashPrefix + formId
}

/** Returns the form id of a field; undefined for the field of a key. */
export function formIdOf(field: string): string | undefined {
  return field.startsWith(flashPrefix) ? field.slice(flashPrefix.length) : undefined
}

/**
 * Returns the text of a value.
 * @param what the name of the value in the message
 * @throws TypeError for a value that JSON cannot hold
 */
export function textOfValue(what: string, value: unknown): string {
  return jsonText(value, `Cannot set ${what} in the session: JSON cannot hold the value`)
}

/**
 * Parses valid JSON; returns a new value at each call. Most values are strings without escapes, for which a slice is
 * three times as fast as parsing.
 */
export function valueOfText(text: string): unknown {
  const isPlainString = text.startsWith('"') && text.endsWith('"') && !text.includes('\\')
  return isPlainString ? text.slice(1, -1) : JSON.parse(text)
}

/** Returns the problem with fields from outside, such as a file; undefined if valid. A bag must be an object. */
export function problemOfFields(fields: Fields): string | undefined {
  for (const [field, text] of fields) {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return 'it has a value that is not JSON'
    }
    if (formIdOf(field) !== undefined && !isObject(value)) return 'it has a flash bag that is not a JSON object'
  }
  return undefined
}
