/**
 * The key `_flash` of a session as a whole: the hash of form id to bag, put together from a field a form id.
 */
import { isObject } from '../base/object.ts'
import { flashFieldOf, flashKey, formIdOf, textOfBag } from './fields.ts'
import type { SessionData } from './session-data.ts'

/** The bags by form id, a copy; undefined when there are none. */
export function bagsOf(data: SessionData): Record<string, unknown> | undefined {
  const entries: [string, unknown][] = []
  for (const field of data.names()) {
    const formId = formIdOf(field)
    if (formId !== undefined) entries.push([formId, JSON.parse(data.get(field) as string)]) // a field that is there
  }
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/**
 * Puts bags in the place of all that are there.
 * @throws TypeError when that is no object of objects that JSON can hold; nothing is changed then
 */
export function setBags(data: SessionData, bags: unknown): void {
  if (!isObject(bags)) {
    throw new TypeError(`Cannot set key "${flashKey}" in the session: it is an object of form ids and bags`)
  }
  const texts = new Map(Object.entries(bags).map(([formId, bag]) => [flashFieldOf(formId), textOfBag(formId, bag)]))
  for (const field of data.names()) {
    if (formIdOf(field) !== undefined && !texts.has(field)) data.change(field, undefined)
  }
  for (const [field, text] of texts) data.change(field, text)
}
