/**
 * The fields of one session as one request sees them: what the store gave, and on top of it what the request changed.
 * It knows neither the store nor HTTP.
 *
 * Surprise: a change counts as unsaved until it is said to be saved, so a save that fails loses nothing, and a field
 * that is changed again while it is being saved stays unsaved.
 */
import type { FieldChanges, Fields } from './store.ts'

const noFields: Fields = new Map()

export class SessionData {
  #stored: Fields
  /** What this request changed, saved or not; undefined means removed. */
  #changed: Map<string, string | undefined> | undefined = undefined
  #unsaved: Set<string> | undefined = undefined

  /** @param stored what the store has; it is not changed */
  constructor(stored: Fields = noFields) {
    this.#stored = stored
  }

  /** The text of a field; undefined when there is none. */
  get(field: string): string | undefined {
    const changed = this.#changed
    return changed !== undefined && changed.has(field) ? changed.get(field) : this.#stored.get(field)
  }

  /**
   * Sets a field, or removes it where the text is undefined. One that is not there counts as changed, too: another
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

  /** Whether something is unsaved. */
  get isChanged(): boolean {
    return this.#unsaved !== undefined && this.#unsaved.size > 0
  }

  /** What is unsaved now. */
  changes(): FieldChanges {
    return this.#collect(this.#unsaved ?? [])
  }

  /** All that this request changed, as a session that begins anew needs it. */
  ownChanges(): FieldChanges {
    return this.#collect(this.#changed?.keys() ?? [])
  }

  /** Notes that changes have been saved. */
  saved(changes: FieldChanges): void {
    for (const [field, text] of changes.set) if (this.#changed?.get(field) === text) this.#unsaved?.delete(field)
    for (const field of changes.removed) if (this.#changed?.get(field) === undefined) this.#unsaved?.delete(field)
  }

  /** Forgets what the store gave. What the request changed stays. */
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
