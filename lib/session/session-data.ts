/**
 * The fields of one session in one request: the fields from the store, with the changes of the request on top. This
 * file is independent of store and HTTP.
 *
 * A change stays unsaved until `saved` is called with it. So a failing save loses nothing, and a field that changes
 * again while it is being saved stays unsaved.
 */
import { formIdOf } from './fields.ts'
import type { FieldChanges, Fields } from './store.ts'

/** The changes of one request; undefined: removed. */
interface Changes {
  readonly all: Map<string, string | undefined>
  /** The changes that are not saved yet. */
  readonly unsaved: Map<string, string | undefined>
}

const noFields: Fields = new Map()

/** The fields of one session in one request. Most requests change none, so the first change creates what it needs. */
export class SessionData {
  /** The store's own map until the first change, then a copy. */
  #fields: Fields
  #copy: Map<string, string> | undefined = undefined
  #changes: Changes | undefined = undefined

  /** @param stored the store's fields; this class does not change the map */
  constructor(stored: Fields = noFields) {
    this.#fields = stored
  }

  /** Returns the text of a field; undefined if there is none. */
  get(field: string): string | undefined {
    return this.#fields.get(field)
  }

  /**
   * Sets a field, or removes it if the text is undefined. Removing a missing field is a change too: another request may
   * be setting it.
   */
  change(field: string, text: string | undefined): void {
    this.#copy ??= new Map(this.#fields)
    this.#fields = this.#copy
    if (text === undefined) this.#copy.delete(field)
    else this.#copy.set(field, text)
    this.#changes ??= { all: new Map(), unsaved: new Map() }
    this.#changes.all.set(field, text)
    this.#changes.unsaved.set(field, text)
  }

  /** Returns the names of all fields. */
  names(): string[] {
    return [...this.#fields.keys()]
  }

  /** Whether there are unsaved changes. */
  get isChanged(): boolean {
    return this.#changes !== undefined && this.#changes.unsaved.size > 0
  }

  /** Returns the unsaved changes. */
  changes(): FieldChanges {
    const set = new Map<string, string>()
    const removed = new Set<string>()
    for (const [field, text] of this.#changes?.unsaved ?? []) {
      if (text === undefined) removed.add(field)
      else set.set(field, text)
    }
    return { set, removed }
  }

  /** Marks changes as saved, except fields that have changed again. */
  saved({ set, removed }: FieldChanges): void {
    for (const [field, text] of this.#changes?.unsaved ?? []) {
      if (text === undefined ? removed.has(field) : set.get(field) === text) this.#changes?.unsaved.delete(field)
    }
  }

  /** Forgets the store's fields. All changes of the request count as unsaved again, for a new session. */
  forgetStored(): void {
    this.#fields = noFields
    this.#copy = undefined
    for (const [field, text] of this.#changes?.all ?? []) this.change(field, text)
  }

  /** Forgets everything. */
  clear(): void {
    this.#fields = noFields
    this.#copy = undefined
    this.#changes = undefined
  }
}

/** Returns the whole key `_flash`: a copy of the bags by form id; undefined if there are none. */
export function bagsOf(data: SessionData): Record<string, unknown> | undefined {
  const entries: [string, unknown][] = []
  for (const field of data.names()) {
    const formId = formIdOf(field)
    if (formId !== undefined) entries.push([formId, JSON.parse(data.get(field) as string)]) // `names` has it.
  }
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
