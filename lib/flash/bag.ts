/**
 * A flash bag: values of one form id, kept in the session until they are read once.
 *
 * A bag object is stateless. Every function reads the session and writes changes back at once, so destroying the
 * session destroys its flash values, and two objects with one id are the same bag. The session is stored at the end of
 * the request, before the headers are sent.
 */
import { isObject } from '../base/object.ts'
import { jsonText } from '../base/json-text.ts'

/** Holds the bags: a session, or just the request. */
interface FlashHolder {
  /** Returns a copy of the bag; undefined if there is none. */
  flashBag(formId: string): Record<string, unknown> | undefined
  /** Stores a copy of the bag; undefined removes it. */
  setFlashBag(formId: string, bag: Record<string, unknown> | undefined): void
}

/** The bag of one form id in one request. Keys are any strings, values any JSON. */
export class FlashBag {
  readonly #id: string
  readonly #holder: FlashHolder
  readonly #keepOnGet: boolean

  /** @param options `keepOnGet`: `get` does not remove the value, for a HEAD or a prefetch, which may go unseen */
  constructor(id: string, options: { readonly holder: FlashHolder; readonly keepOnGet: boolean }) {
    this.#id = id
    this.#holder = options.holder
    this.#keepOnGet = options.keepOnGet
  }

  /**
   * Sets a value, or each member of an object. Other keys of the bag stay.
   * @throws TypeError for a key that is not a string and for a value that JSON cannot hold, without setting anything
   */
  set(key: string, value: unknown): void
  set(hash: Readonly<Record<string, unknown>>): void
  set(keyOrHash: unknown, value?: unknown): void {
    const bag = this.#read() ?? (Object.create(null) as Record<string, unknown>)
    for (const [key, entry] of this.#entriesOf(keyOrHash, value)) {
      jsonText(entry, `Cannot set flash "${this.#id}": JSON cannot hold the value of key "${key}"`)
      bag[key] = entry
    }
    this.#write(bag)
  }

  /** Returns a value and removes it; without one, the fallback. A HEAD or a prefetch does not remove it. */
  get(key: string, fallback?: unknown): unknown {
    const bag = this.#read()
    if (bag === undefined || !(key in bag)) return fallback
    const value = bag[key]
    if (!this.#keepOnGet) {
      delete bag[key]
      this.#write(bag)
    }
    return value
  }

  /** Returns whether there is a value, without removing it. */
  has(key: string): boolean {
    const bag = this.#read()
    return bag !== undefined && key in bag
  }

  /** Removes a key without reading it. */
  delete(key: string): void {
    const bag = this.#read()
    if (bag === undefined || !(key in bag)) return
    delete bag[key]
    this.#write(bag)
  }

  /** Empties the bag. */
  clear(): void {
    if (this.#holder.flashBag(this.#id) !== undefined) this.#holder.setFlashBag(this.#id, undefined)
  }

  /** Writes the bag to the session. Every change already does that; this is for code that is explicit. */
  save(): void {
    const bag = this.#read()
    if (bag !== undefined) this.#write(bag)
  }

  /** The form id. */
  getId(): string {
    return this.#id
  }

  /** Returns a copy without prototype, so that `__proto__` is a key like any other. */
  #read(): Record<string, unknown> | undefined {
    const bag = this.#holder.flashBag(this.#id)
    return bag === undefined ? undefined : (Object.assign(Object.create(null), bag) as Record<string, unknown>)
  }

  #write(bag: Record<string, unknown>): void {
    this.#holder.setFlashBag(this.#id, Object.keys(bag).length === 0 ? undefined : bag)
  }

  #entriesOf(keyOrHash: unknown, value: unknown): (readonly [key: string, value: unknown])[] {
    if (typeof keyOrHash === 'string') return [[keyOrHash, value]]
    if (isObject(keyOrHash)) return Object.entries(keyOrHash)
    throw new TypeError(`Cannot set flash "${this.#id}": pass a string and a value, or an object of keys and values`)
  }
}

/** Holds the bags of a request without a session. */
export class RequestFlash implements FlashHolder {
  readonly #bags = new Map<string, string>()

  flashBag(formId: string): Record<string, unknown> | undefined {
    const text = this.#bags.get(formId)
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>) // `setFlashBag` wrote it.
  }

  setFlashBag(formId: string, bag: Record<string, unknown> | undefined): void {
    if (bag === undefined) this.#bags.delete(formId)
    else this.#bags.set(formId, JSON.stringify(bag))
  }
}
