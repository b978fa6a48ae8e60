/**
 * A flash bag: values of one form id that are kept in the session until somebody reads them, once.
 *
 * Surprise: a bag holds nothing itself. Every function looks into the session and puts what it changed back at once, so
 * that a session that is destroyed takes its flash along, and two bags of one id are the same bag. What is in the
 * session is stored at the end of the request, before the headers leave.
 */
import { isObject } from '../base/object.ts'
import { reasonOf } from '../base/reason.ts'

/** Where bags lie: a session, or the request alone. */
export interface FlashHolder {
  /** A copy of what was set; undefined when there is no such bag. */
  flashBag(formId: string): Record<string, unknown> | undefined
  /** Takes a bag, as JSON has it now; undefined removes it. */
  setFlashBag(formId: string, bag: Record<string, unknown> | undefined): void
}

/** Where a bag lies and how it is read. */
export interface FlashBagOptions {
  readonly holder: FlashHolder
  /** Whether `get` leaves what it reads: nobody may see the answer to a HEAD or a prefetch. */
  readonly keepsWhatIsRead: boolean
}

/** The bag of one form id in one request. Keys are any strings, values what JSON can hold. */
export class FlashBag {
  readonly #id: string
  readonly #holder: FlashHolder
  readonly #keepsWhatIsRead: boolean

  constructor(id: string, { holder, keepsWhatIsRead }: FlashBagOptions) {
    this.#id = id
    this.#holder = holder
    this.#keepsWhatIsRead = keepsWhatIsRead
  }

  /**
   * Sets a value, or each member of an object. Other keys of the bag stay.
   * @throws TypeError for a key that is no string and for a value that JSON cannot hold; nothing is set then
   */
  set(key: string, value: unknown): void
  set(hash: Readonly<Record<string, unknown>>): void
  set(keyOrHash: unknown, value?: unknown): void {
    const bag = this.#read() ?? emptyBag()
    for (const [key, one] of this.#entriesOf(keyOrHash, value)) {
      this.#check(key, one)
      bag[key] = one
    }
    this.#write(bag)
  }

  /** Returns a value and removes it; the fallback when it is not there. A HEAD and a prefetch leave it. */
  get(key: string, fallback?: unknown): unknown {
    const bag = this.#read()
    if (bag === undefined || !(key in bag)) return fallback
    const value = bag[key]
    if (!this.#keepsWhatIsRead) {
      delete bag[key]
      this.#write(bag)
    }
    return value
  }

  /** Whether there is a value. It stays. */
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

  /** Puts the bag into the session. It is there after every change already: this is for code that says so. */
  save(): void {
    const bag = this.#read()
    if (bag !== undefined) this.#write(bag)
  }

  /** The form id. */
  getId(): string {
    return this.#id
  }

  /** Without prototype, so that `__proto__` is a key like any other. */
  #read(): Record<string, unknown> | undefined {
    const bag = this.#holder.flashBag(this.#id)
    return bag === undefined ? undefined : Object.assign(emptyBag(), bag)
  }

  #write(bag: Record<string, unknown>): void {
    this.#holder.setFlashBag(this.#id, Object.keys(bag).length === 0 ? undefined : bag)
  }

  #entriesOf(keyOrHash: unknown, value: unknown): (readonly [key: string, value: unknown])[] {
    if (typeof keyOrHash === 'string') return [[keyOrHash, value]]
    const isHash = isObject(keyOrHash)
    if (isHash) return Object.entries(keyOrHash)
    throw new TypeError(`Cannot set flash "${this.#id}": give a string and a value, or an object of keys and values`)
  }

  #check(key: string, value: unknown): void {
    const refused = `Cannot set flash "${this.#id}": JSON cannot hold the value of key "${key}"`
    let text: string | undefined
    try {
      text = JSON.stringify(value)
    } catch (cause) {
      throw new TypeError(`${refused}: ${reasonOf(cause)}`, { cause })
    }
    if (text === undefined) throw new TypeError(`${refused}: it is of type ${typeof value}`)
  }
}

/** Holds bags for one request, where there is no session. */
export class RequestFlash implements FlashHolder {
  readonly #bags = new Map<string, string>()

  flashBag(formId: string): Record<string, unknown> | undefined {
    const text = this.#bags.get(formId)
    return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>) // as it was set
  }

  setFlashBag(formId: string, bag: Record<string, unknown> | undefined): void {
    if (bag === undefined) this.#bags.delete(formId)
    else this.#bags.set(formId, JSON.stringify(bag))
  }
}

function emptyBag(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown> // typed here, since Object.create gives any
}
