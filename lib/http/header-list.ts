/**
 * The header fields of an answer, in the flat form that `response.writeHead` takes: name and value in turn.
 */
import { asPropertyName } from '../base/property-name.ts'
import { validateHeaderName, validateHeaderValue } from './node-http.ts'

/** Fields that only the server sets, by the body. */
const framingFields = /^(?:content-length|transfer-encoding)$/i
/** Fields that Node adds when they are not set, or that change what it does. */
const fieldsOfNode = /^(?:connection|content-disposition|date|expect|keep-alive|trailer)$/i

/** The fields of a list that has none. */
const noFields: readonly string[] = []

/** A field name that was checked. */
interface FieldName {
  readonly lower: string
  /** Whether the field has no meaning for Node. */
  readonly plain: boolean
}

/** The names that were checked so far: applications use a few, and each is checked once. */
const names = new Map<string, FieldName>()
/** Limits, for an application that makes names from what clients send. */
const mostNames = 256
const longestName = 64

/** An ordered list of header fields. Names are compared without regard to case. */
export class HeaderList {
  /** Name and value in turn. Until a field is set it is the array given to `fill`, which many answers share. */
  flat: readonly string[] = noFields
  /** Whether none of the fields has a meaning for Node, so that they may be sent without its checks. */
  plain = true
  /** The fields that `SVC_MwHeaders` has set, if it has run. */
  ofHeaders: readonly string[] | undefined = undefined
  /** Whether `flat` belongs to other lists too. */
  #isShared = true

  /**
   * Sets a field; it replaces all fields of that name. A list of values sets a field each.
   * @throws TypeError when the name is no token or a value has a character that no field may hold (RFC 9110, section
   *   5.5), is null or undefined, and for Content-Length and Transfer-Encoding
   */
  set(name: string, value: string | number | readonly (string | number)[]): void {
    const known = nameOf(name)
    const texts =
      typeof value === 'object' && value !== null ? [...value].map((one) => textOf(name, one)) : [textOf(name, value)]
    this.#remove(known.lower)
    const flat = this.#own()
    for (const text of texts) flat.push(name, text)
    if (!known.plain) this.plain = false
  }

  /**
   * Adds a field to those of the same name, as `Set-Cookie` needs. Throws as `set` does.
   * @param replaces tells the values of that name that it replaces; none unless given
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
   * @param fields name and value in turn, none of them known to Node; they are not checked. Pass the same array each
   *   time: answers that have these fields alone share their text (`header-section.ts`)
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
   * Adds a member to a field that is a list (RFC 9651, section 3.1), and the field when it is not set.
   * @param name a field that is plain to Node
   * @param member of the server's own making: it is not checked
   */
  addMember(name: string, member: string): void {
    const at = this.#find(name.toLowerCase(), 0)
    const flat = this.#own()
    if (at < 0) flat.push(name, member)
    else flat[at + 1] += `, ${member}`
  }

  /** The first value of a field, or undefined. */
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

  /** The fields as an array of this list alone. */
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

/** Checks a field that is set later. Throws as `HeaderList.set` does. */
export function checkField(name: string, value: string): void {
  nameOf(name)
  textOf(name, value)
}

/** Throws TypeError for a name that is no token or that only the server sets. */
function nameOf(name: string): FieldName {
  const known = names.get(name)
  if (known !== undefined) return known
  validateHeaderName(name)
  if (framingFields.test(name)) {
    const advice = 'leave it out; texts, bytes and files are sent with their length, streams in chunks'
    throw new TypeError(`Cannot set ${name}: the server sets it by the body: ${advice}`)
  }
  const made = { lower: asPropertyName(name.toLowerCase()), plain: !fieldsOfNode.test(name) }
  // A copy: a name that was cut out of another text would keep all of that in memory.
  if (names.size < mostNames && name.length <= longestName) names.set(asPropertyName(name), made)
  return made
}

function lowerOf(name: string): string {
  return names.get(name)?.lower ?? name.toLowerCase()
}

/** A value as it is sent. An object is converted once: what is checked is what is sent. */
function textOf(name: string, value: string | number): string {
  const text = value === undefined || value === null ? undefined : `${value}`
  validateHeaderValue(name, text as string) // Its type wants a string; it refuses undefined.
  return text as string
}
