/**
 * How the values of a view become text.
 */

import { escapeHtml } from '../http/escape-html.ts'

/**
 * Returns the value as text for HTML, also within a quoted attribute value; null and undefined give nothing.
 * @throws TypeError when it has no text, or is a promise
 */
export function toHtml(value: unknown): string {
  if (typeof value === 'string') return escapeHtml(value)
  if (typeof value === 'number') return String(value)
  return escapeHtml(toText(value))
}

/**
 * Returns the value as text, as it is; null and undefined give nothing.
 * @throws TypeError when it has no text, or is a promise
 */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === null || value === undefined) return ''
  if (value instanceof Promise) throw new TypeError('the value is a promise: await it in the action')
  return String(value)
}

/**
 * Returns what `@foreach` walks through: null and undefined have no items.
 * @throws TypeError when the value cannot be iterated
 */
export function toItems(value: unknown): Iterable<unknown> {
  if (value === null || value === undefined) return []
  if (typeof value === 'string') return value
  // The test is for the one member that makes an iterable; whether it works shows when it is walked through.
  if (typeof value === 'object' && Symbol.iterator in value) return value as Iterable<unknown>
  throw new TypeError(`@foreach needs a list: the value is ${describe(value)}`)
}

function describe(value: unknown): string {
  if (value instanceof Promise) return 'a promise (await it in the action)'
  return typeof value === 'object' ? 'an object that cannot be iterated (try Object.entries)' : `a ${typeof value}`
}
