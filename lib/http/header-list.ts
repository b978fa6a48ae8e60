/**
 * The header fields of an answer, in the flat form that `response.writeHead` takes: name and value in turn.
 */
import { validateHeaderName, validateHeaderValue } from './node-http.ts'

/** What the server alone sets: by the body, and so that no answer has two of it. */
const framingFields = /^(?:content-length|transfer-encoding)$/i
/** Those, and all that Node writes itself where nobody has, or treats in a way of its own. */
const fieldsOfNode = /^(?:connection|content-disposition|content-length|date|expect|keep-alive|trailer|transfer-encoding)$/i

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
    this.#checkName(name)
    const texts = typeof value === 'object' && value !== null ? [...value].map((one) => textOf(name, one)) : [textOf(name, value)]
    this.delete(name)
    for (const text of texts) this.flat.push(name, text)
  }

  /** Adds a field beside those of the same name, as `Set-Cookie` needs. Throws as `set` does. */
  append(name: string, value: string): void {
    this.#checkName(name)
    this.flat.push(name, textOf(name, value))
  }

  /** The first value of a field, or undefined. */
  get(name: string): string | undefined {
    const at = this.#find(name, 0)
    return at < 0 ? undefined : this.flat[at + 1]
  }

  /** Removes every field of a name. */
  delete(name: string): void {
    for (let at = this.#find(name, 0); at >= 0; at = this.#find(name, at)) this.flat.splice(at, 2)
  }

  #find(name: string, from: number): number {
    const wanted = name.toLowerCase()
    for (let at = from; at < this.flat.length; at += 2) {
      const candidate = this.flat[at] as string
      if (candidate.length === wanted.length && candidate.toLowerCase() === wanted) return at
    }
    return -1
  }

  #checkName(name: string): void {
    validateHeaderName(name)
    if (!fieldsOfNode.test(name)) return
    if (framingFields.test(name)) throw new TypeError(`Cannot set ${name}: the server sets it by the body`)
    this.plain = false
  }
}

/** A value as it is sent. It is checked as a text, since an object may give another one each time. */
function textOf(name: string, value: string | number): string {
  const text = value === undefined || value === null ? undefined : String(value)
  validateHeaderValue(name, text as string) // Its type wants a string; it refuses undefined.
  return text as string
}
