/**
 * The header fields of a response, in the flat form that `response.writeHead` accepts: name and value in turn.
 */
import { asPropertyName } from '../base/property-name.ts'
import { validateHeaderName, validateHeaderValue } from './node-http.ts'

/** Fields that only the server sends, according to the body. */
const framingFields = /^(?:content-length|transfer-encoding)$/i
const lengthName = 'content-length'
/** Fields that conditions of a request refer to (RFC 9110, section 8.8). */
const validatorFields = /^(?:etag|last-modified)$/i
/** Fields that Node adds by default, or that change its behaviour. */
const fieldsOfNode = /^(?:connection|content-disposition|date|expect|keep-alive|trailer)$/i

/** The fields of an empty list. */
const noFields: readonly string[] = []

/** A valid field name. */
interface FieldName {
  readonly lower: string
  /** Whether the field has no meaning for Node. */
  readonly plain: boolean
  readonly isValidator: boolean
}

/** The checked names: applications use few, and each is checked once. */
const names = new Map<string, FieldName>()
/** Limits, for an application that derives names from client input. */
const maxNames = 256
const longestName = 64

/** An ordered list of header fields. Names are compared without regard to case. */
export class HeaderList {
  /** Name and value in turn. Until a field is set it is the array passed to `fill`, which many responses share. */
  flat: readonly string[] = noFields
  /** Whether none of the fields has a meaning for Node, so that they may be sent without its checks. */
  plain = true
  /** The fields that `SVC_MwHeaders` has set, if it has run. */
  ofHeaders: readonly string[] | undefined = undefined
  /** Whether an ETag or a Last-Modified has been set. */
  hasValidator = false
  /** The Content-Length that the application has set, for a stream. */
  length: number | undefined = undefined
  /** Whether other lists use the same `flat`. */
  #isShared = true

  /**
   * Sets a field, replacing all fields of that name. A list sets one field per value.
   * @throws TypeError if the name is not a token or a value has an invalid character (RFC 9110, section 5.5), is null
   *   or undefined, for a Content-Length that is not a whole number, and for Transfer-Encoding
   */
  set(name: string, value: string | number | readonly (string | number)[]): void {
    if (name.length === lengthName.length && name.toLowerCase() === lengthName) {
      this.length = lengthOf(value)
      return
    }
    const known = nameOf(name)
    const texts =
      typeof value === 'object' && value !== null ? [...value].map((one) => textOf(name, one)) : [textOf(name, value)]
    this.#remove(known.lower)
    const flat = this.#own()
    for (const text of texts) flat.push(name, text)
    if (!known.plain) this.plain = false
    if (known.isValidator) this.hasValidator = true
  }

  /**
   * Adds a field without replacing others of that name, as needed for `Set-Cookie`. Throws as `set` does.
   * @param replaces whether an earlier value of that name is replaced; default: none is
   */
  append(name: string, value: string, replaces?: (earlier: string) => boolean): void {
    const { lower, plain } = nameOf(name)
    const text = textOf(name, value)
    const flat = this.#own()
    let at = replaces === undefined ? -1 : this.#find(lower, 0)
    while (at >= 0) {
      if (replaces?.(flat[at + 1] as string) === true) flat.splice(at, 2)
      else at += 2
      at = this.#find(lower, at)
    }
    flat.push(name, text)
    if (!plain) this.plain = false
  }

  /**
   * Sets fields that are not set yet.
   * @param fields name and value in turn, none special to Node; they are not checked. Pass the same array each time:
   *   responses with only these fields share their text (`header-section.ts`)
   */
  fill(fields: readonly string[]): void {
    if (this.flat.length === 0) {
      this.flat = fields
      this.#isShared = true
    } else {
      const flat = this.#own()
      for (let at = 0; at < fields.length; at += 2) {
        const name = fields[at] as string
        if (this.#find(lowerOf(name), 0) < 0) flat.push(name, fields[at + 1] as string)
      }
    }
  }

  /**
   * Adds a member to a field that is a list (RFC 9651, section 3.1), or sets the field.
   * @param name a field without meaning for Node
   * @param member from the server's own code: it is not checked
   */
  addMember(name: string, member: string): void {
    const at = this.#find(name.toLowerCase(), 0)
    const flat = this.#own()
    if (at < 0) flat.push(name, member)
    else flat[at + 1] += `, ${member}`
  }

  /** Returns the first value of a field, or undefined. */
  get(name: string): string | undefined {
    const at = this.#find(lowerOf(name), 0)
    return at < 0 ? undefined : this.flat[at + 1]
  }

  /** Removes every field of a name. */
  delete(name: string): void {
    this.#remove(lowerOf(name))
  }

  #remove(wanted: string): void {
    for (let at = this.#find(wanted, 0); at >= 0; at = this.#find(wanted, at)) this.#own().splice(at, 2)
  }

  /** Returns the fields as an array that only this list uses. */
  #own(): string[] {
    if (this.#isShared) {
      this.flat = this.flat.slice()
      this.#isShared = false
    }
    return this.flat as string[] // It is a copy.
  }

  #find(wanted: string, from: number): number {
    for (let at = from; at < this.flat.length; at += 2) {
      const candidate = this.flat[at] as string
      if (candidate.length === wanted.length && candidate.toLowerCase() === wanted) return at
    }
    return -1
  }
}

/** Checks a field to be set later. Throws as `HeaderList.set` does. */
export function checkField(name: string, value: string): void {
  nameOf(name)
  textOf(name, value)
}

/** Throws TypeError for a name that is not a token or that only the server sets. */
function nameOf(name: string): FieldName {
  const known = names.get(name)
  if (known !== undefined) return known
  validateHeaderName(name)
  if (framingFields.test(name)) {
    const advice = 'leave it out; texts, bytes and files are sent with their length, streams in chunks'
    throw new TypeError(`Cannot set ${name}: the server sets it according to the body: ${advice}`)
  }
  const lower = asPropertyName(name.toLowerCase())
  const made = { lower, plain: !fieldsOfNode.test(name), isValidator: validatorFields.test(name) }
  // A copy: a substring would keep the whole text in memory.
  if (names.size < maxNames && name.length <= longestName) names.set(asPropertyName(name), made)
  return made
}

function lengthOf(value: unknown): number {
  if (/^\d{1,15}$/.test(String(value))) return Number(value)
  throw new TypeError(`Cannot set Content-Length: it must be a number of bytes: it is ${JSON.stringify(value)}`)
}

function lowerOf(name: string): string {
  return names.get(name)?.lower ?? name.toLowerCase()
}

/** Returns a value as it is sent. An object is converted once, so that the checked text is sent. */
function textOf(name: string, value: string | number): string {
  const text = value === undefined || value === null ? undefined : `${value}`
  validateHeaderValue(name, text as string) // It throws for undefined.
  return text as string
}
