/**
 * Maps the keys of a session to the fields of a store, and values to texts.
 *
 * The key `_flash` is not one field: each form id in it is a field of its own, so that concurrent requests do not undo
 * each other's form ids.
 */
import { jsonText } from '../base/json-text.ts'
import { isObject } from '../base/object.ts'
import type { Fields } from './store.ts'

/** The key that holds the flash messages: a hash of form id to bag. */
export const flashKey = '_flash'

/** The key that holds the CSRF token. */
export const csrfTokenKey = '_csrf_token'

const keyPrefix = 'key:'
const flashPrefix = 'flash:'

/** The field of a key. Throws TypeError when it is not a string, or is `_flash`, which only `flash(id)` changes. */
export function fieldOf(key: unknown): string {
  if (typeof key !== 'string') throw new TypeError(`A key of the session is a string: it is ${typeof key}`)
  if (key === flashKey) throw new TypeError(`Cannot change key "${flashKey}" of the session: use flash(id)`)
  return keyPrefix + key
}

/** The field of a form id in `_flash`. It differs from that of any key. */
export function flashFieldOf(formId: string): string {
  return flashPrefix + formId
}

/** The form id of a field; undefined for the field of a key. */
export function formIdOf(field: string): string | undefined {
  return field.startsWith(flashPrefix) ? field.slice(flashPrefix.length) : undefined
}

/**
 * The text of a value.
 * @param what names the value in the message
 * @throws TypeError for a value that JSON cannot hold
 */
export function textOfValue(what: string, value: unknown): string {
  return jsonText(value, `Cannot set ${what} in the session: JSON cannot hold the value`)
}

/**
 * The value of a text that is valid JSON; a new one at each call. Most are strings without escapes, which V8 cuts out
 * of the text three times as fast as it parses them.
 */
export function valueOfText(text: string): unknown {
  const isPlainString = text.startsWith('"') && text.endsWith('"') && !text.includes('\\')
  return isPlainString ? text.slice(1, -1) : JSON.parse(text)
}

/** Returns the problem of fields from outside, such as a file; undefined without one. A bag must be an object. */
export function problemOfFields(fields: Fields): string | undefined {
  for (const [field, text] of fields) {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return 'it has a value that is no JSON'
    }
    if (formIdOf(field) !== undefined && !isObject(value)) return 'it has a flash bag that is no JSON object'
  }
  return undefined
}
