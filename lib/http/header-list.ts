/**
 * The header fields of an answer, in the flat form that `response.writeHead` takes: name and value in turn.
 */
import { asPropertyName } from '../base/property-name.ts'
import { validateHeaderName, validateHeaderValue } from './node-http.ts'

/** What the server alone sets: by the body, and so that no answer has two of it. */
const framingFields = /^(?:content-length|transfer-encoding)$/i
/** Those that Node writes itself where nobody has, or treats in a way of its own. */
const fieldsOfNode = /^(?:connection|content-disposition|date|expect|keep-alive|trailer)$/i

/** What is known of a field's name. */
interface FieldName {
  readonly lower: string
  /** Whether Node does not look at it. */
  readonly plain: boolean
}

/** The names that were set so far: applications have a few of them, and each is looked at once. */
const names = new Map<string, FieldName>()
/** Neither more nor longer ones are kept, for an application that makes names of what it is sent. */
const mostNames = 256
const longestName = 64

/** An ordered list of header fields. Names are told apart without regard to case. */
export class HeaderList {
  /** Name and value in turn. */
  readonly flat: string[] = []
  /** Whether nothing was set that Node looks at: these fields may then be sent as they are. */
  plain = true

  /**
   * Sets a field in place of all of that name; a list of values gives one field each.
   * @throws TypeError when the name is no token or a value has a character that no field may hold (RFC 9110, section
   *   5.5), is null or undefined, and for Content-Length and Transfer-Encoding
   */
  set(name: string, value: string | number | readonly (string | number)[]): void {
    const known = nameOf(name)
    const texts =
      typeof value === 'object' && value !== null ? [...value].map((one) => textOf(name, one)) : [textOf(name, value)]
    this.#remove(known.lower)
    for (const text of texts) this.flat.push(name, text)
    if (!known.plain) this.plain = false
  }

  /**
   * Adds a field beside those of the same name, as `Set-Cookie` needs. Throws as `set` does.
   * @param replaces the values of that name whose place it takes; none unless given
   */
  append(name: string, value: string, replaces?: (earlier: string) => boolean): void {
    const { lower, plain } = nameOf(name)
    const text = textOf(name, value)
    let at = replaces === undefined ? -1 : this.#find(lower, 0)
    while (at >= 0) {
      if (replaces?.(this.flat[at + 1] as string) === true) this.flat.splice(at, 2) // Names and values stand in turn.
      else at += 2
      at = this.#find(lower, at)
    }
    this.flat.push(name, text)
    if (!plain) this.plain = false
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
    for (let at = this.#find(wanted, 0); at >= 0; at = this.#find(wanted, at)) this.flat.splice(at, 2)
  }

  #find(wanted: string, from: number): number {
    for (let at = from; at < this.flat.length; at += 2) {
      const candidate = this.flat[at] as string
      if (candidate.length === wanted.length && candidate.toLowerCase() === wanted) return at
    }
    return -1
  }
}

/** Throws TypeError for a name that is no token, and for one that the server alone sets. */
function nameOf(name: string): FieldName {
  const known = names.get(name)
  if (known !== undefined) return known
  validateHeaderName(name)
  if (framingFields.test(name)) throw new TypeError(`Cannot set ${name}: the server sets it by the body`)
  const made = { lower: asPropertyName(name.toLowerCase()), plain: !fieldsOfNode.test(name) }
  // A text of its own: one that was cut out of another would keep all of that.
  if (names.size < mostNames && name.length <= longestName) names.set(asPropertyName(name), made)
  return made
}

function lowerOf(name: string): string {
  return names.get(name)?.lower ?? name.toLowerCase()
}

/** A value as it is sent. It is checked as a text, since an object may give another one each time. */
function textOf(name: string, value: string | number): string {
  const text = value === undefined || value === null ? undefined : `${value}`
  validateHeaderValue(name, text as string) // Its type wants a string; it refuses undefined.
  return text as string
}
