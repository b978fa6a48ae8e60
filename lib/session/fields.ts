/**
 * How the keys of a session are the fields of a store, and values their texts.
 *
 * Surprise: the key `_flash` is no field. Each of its form ids is one, so that requests that run at the same time do
 * not undo each other's form ids.
 */
import { isObject } from '../base/object.ts'
import { reasonOf } from '../base/reason.ts'
import type { Fields } from './store.ts'

/** The key that holds the flash messages: a hash of form id to bag. */
export const flashKey = '_flash'

/** The key that holds the CSRF token. */
export const csrfTokenKey = '_csrf_token'

const keyPrefix = 'key:'
const flashPrefix = 'flash:'

/** A key as an application gives it. Throws TypeError for what is no string. */
export function checkedKey(key: unknown): string {
  if (typeof key === 'string') return key
  throw new TypeError(`A key of the session is a string: it is ${typeof key}`)
}

/** The field of a key, which is not `_flash`. */
export function fieldOf(key: string): string {
  return keyPrefix + key
}

/** The field of a form id in `_flash`. No key has the same. */
export function flashFieldOf(formId: string): string {
  return flashPrefix + formId
}

/** The form id of a field; undefined for the field of a key. */
export function formIdOf(field: string): string | undefined {
  return field.startsWith(flashPrefix) ? field.slice(flashPrefix.length) : undefined
}

/**
 * The text of a value: JSON, as JSON has it (a Date becomes a text, NaN null).
 * @param what for the message: which value it is
 * @throws TypeError for what JSON cannot hold: undefined, a function, a symbol, a bigint, a circular structure
 */
export function textOfValue(what: string, value: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    const reason = reasonOf(error)
    throw new TypeError(`Cannot set ${what} in the session: JSON cannot hold the value: ${reason}`, { cause: error })
  }
  if (text !== undefined) return text
  throw new TypeError(`Cannot set ${what} in the session: JSON cannot hold the value: it is ${typeof value}`)
}

/**
 * The value of a text, valid JSON, made anew each time. Most are strings in which nothing is escaped: to parse one
 * takes V8 three times as long as to cut it out.
 */
export function valueOfText(text: string): unknown {
  const isPlainString = text.startsWith('"') && text.endsWith('"') && !text.includes('\\')
  return isPlainString ? text.slice(1, -1) : JSON.parse(text)
}

/**
 * The text of a bag of flash messages, an object.
 * @throws TypeError for what is none, and as above
 */
export function textOfBag(formId: string, bag: unknown): string {
  const what = `${flashKey} ${JSON.stringify(formId)}`
  const text = textOfValue(what, bag)
  if (text.startsWith('{')) return text
  throw new TypeError(`Cannot set ${what} in the session: a bag is an object: it is ${text.slice(0, 40)}`)
}

/** What is wrong with fields that come from outside, a file: each is JSON, that of a form id an object. */
export function problemOfFields(fields: Fields): string | undefined {
  for (const [field, text] of fields) {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return 'it has a value that is no JSON'
    }
    const isBag = isObject(value)
    if (formIdOf(field) !== undefined && !isBag) return 'it has a flash bag that is no JSON object'
  }
  return undefined
}
