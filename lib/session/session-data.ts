/**
 * The fields of one session as one request sees them: those that the store had, with the changes of the request on top.
 * This file knows neither the store nor HTTP.
 *
 * A change stays unsaved until `saved` is called with it. So a save that fails loses nothing, and a field that changes
 * again while it is being saved stays unsaved.
 */
import { isObject } from '../base/object.ts'
import { flashFieldOf, flashKey, formIdOf, textOfBag } from './fields.ts'
import type { FieldChanges, Fields } from './store.ts'

const noFields: Fields = new Map()

/** The fields of one session in one request. */
export class SessionData {
  #stored: Fields
  /** The changes of this request, saved or not; undefined: removed. */
  #changed: Map<string, string | undefined> | undefined = undefined
  #unsaved: Set<string> | undefined = undefined

  /** @param stored the store's fields; this class does not change the map */
  constructor(stored: Fields = noFields) {
    this.#stored = stored
  }

  /** The text of a field; undefined when there is none. */
  get(field: string): string | undefined {
    const changed = this.#changed
    return changed !== undefined && changed.has(field) ? changed.get(field) : this.#stored.get(field)
  }

  /**
   * Sets a field, or removes it when the text is undefined. Removing a field that is not there is a change too: another
   * request may be setting it.
   */
  change(field: string, text: string | undefined): void {
    this.#changed ??= new Map()
    this.#unsaved ??= new Set()
    this.#changed.set(field, text)
    this.#unsaved.add(field)
  }

  /** The names of all fields. */
  names(): string[] {
    const changed = this.#changed
    if (changed === undefined) return [...this.#stored.keys()]
    const names = new Set([...this.#stored.keys(), ...changed.keys()])
    return [...names].filter((name) => this.get(name) !== undefined)
  }

  /** Whether there are unsaved changes. */
  get isChanged(): boolean {
    return this.#unsaved !== undefined && this.#unsaved.size > 0
  }

  /** The unsaved changes. */
  changes(): FieldChanges {
    return this.#collect(this.#unsaved ?? [])
  }

  /** All changes of this request, as a new session needs them. */
  ownChanges(): FieldChanges {
    return this.#collect(this.#changed?.keys() ?? [])
  }

  /** Marks changes as saved, unless they changed again since. */
  saved(changes: FieldChanges): void {
    for (const [field, text] of changes.set) if (this.#changed?.get(field) === text) this.#unsaved?.delete(field)
    for (const field of changes.removed) if (this.#changed?.get(field) === undefined) this.#unsaved?.delete(field)
  }

  /** Forgets the store's fields. The changes of the request stay. */
  forgetStored(): void {
    this.#stored = noFields
  }

  /** Forgets everything. */
  clear(): void {
    this.#stored = noFields
    this.#changed = undefined
    this.#unsaved = undefined
  }

  #collect(fields: Iterable<string>): FieldChanges {
    const set = new Map<string, string>()
    const removed = new Set<string>()
    for (const field of fields) {
      const text = this.#changed?.get(field)
      if (text === undefined) removed.add(field)
      else set.set(field, text)
    }
    return { set, removed }
  }
}

/** The key `_flash` as a whole: the bags by form id, a copy; undefined when there are none. */
export function bagsOf(data: SessionData): Record<string, unknown> | undefined {
  const entries: [string, unknown][] = []
  for (const field of data.names()) {
    const formId = formIdOf(field)
    if (formId !== undefined) entries.push([formId, JSON.parse(data.get(field) as string)]) // `names` has it.
  }
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/**
 * Replaces all bags.
 * @throws TypeError, and changes nothing, unless the value is an object of objects that JSON can hold
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
