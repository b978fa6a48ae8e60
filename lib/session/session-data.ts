/**
 * The fields of one session as one request sees them: those that the store had, with the changes of the request on top.
 * This file knows neither the store nor HTTP.
 *
 * A change stays unsaved until `saved` is called with it. So a save that fails loses nothing, and a field that changes
 * again while it is being saved stays unsaved.
 */
import { formIdOf } from './fields.ts'
import type { FieldChanges, Fields } from './store.ts'

/** The fields of one session in one request. */
export class SessionData {
  readonly #fields: Map<string, string>
  /** The changes of this request; undefined: removed. */
  readonly #changed = new Map<string, string | undefined>()
  /** Those that are not saved. */
  readonly #unsaved = new Map<string, string | undefined>()

  /** @param stored the store's fields; this class does not change the map */
  constructor(stored: Fields = new Map()) {
    this.#fields = new Map(stored)
  }

  /** The text of a field; undefined when there is none. */
  get(field: string): string | undefined {
    return this.#fields.get(field)
  }

  /**
   * Sets a field, or removes it when the text is undefined. Removing a field that is not there is a change too: another
   * request may be setting it.
   */
  change(field: string, text: string | undefined): void {
    if (text === undefined) this.#fields.delete(field)
    else this.#fields.set(field, text)
    this.#changed.set(field, text)
    this.#unsaved.set(field, text)
  }

  /** The names of all fields. */
  names(): string[] {
    return [...this.#fields.keys()]
  }

  /** Whether there are unsaved changes. */
  get isChanged(): boolean {
    return this.#unsaved.size > 0
  }

  /** The unsaved changes. */
  changes(): FieldChanges {
    const set = new Map<string, string>()
    const removed = new Set<string>()
    for (const [field, text] of this.#unsaved) {
      if (text === undefined) removed.add(field)
      else set.set(field, text)
    }
    return { set, removed }
  }

  /** Marks changes as saved, unless they changed again since. */
  saved({ set, removed }: FieldChanges): void {
    for (const [field, text] of this.#unsaved) {
      if (text === undefined ? removed.has(field) : set.get(field) === text) this.#unsaved.delete(field)
    }
  }

  /** Forgets the store's fields. All changes of the request are unsaved then, as a new session needs them. */
  forgetStored(): void {
    this.#fields.clear()
    for (const [field, text] of this.#changed) this.change(field, text)
  }

  /** Forgets everything. */
  clear(): void {
    this.#fields.clear()
    this.#changed.clear()
    this.#unsaved.clear()
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
