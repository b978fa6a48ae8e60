/**
 * Reads the structure of a JSON text (RFC 8259): where each object, name and value stands. `JSON.parse` gives the
 * values; this gives the places, for messages that name a line and for changes that leave every other byte as it was.
 *
 * Surprise: a name that stands twice in one object is an error here. `JSON.parse` silently takes the last.
 */

import { parseStrictly } from './parse-strictly.ts'

/** A value and where it stands: `text.slice(start, end)`. `members` is there for objects only. */
export interface JsonNode {
  readonly start: number
  readonly end: number
  readonly members?: readonly JsonMember[]
}

/** A member of an object. `start` and `nameEnd` enclose its name with the quotes. */
export interface JsonMember {
  readonly name: string
  readonly start: number
  readonly nameEnd: number
  readonly value: JsonNode
}

/**
 * A text that is no JSON. `offset` is where in the text. The message of `mapJson` has no place, that of `parseJson`
 * has.
 */
export class JsonError extends Error {
  override readonly name = 'JsonError'
  readonly offset: number

  constructor(message: string, offset: number, options?: ErrorOptions) {
    super(message, options)
    this.offset = offset
  }
}

/** How deep objects and lists may lie in each other. */
const maxDepth = 100
/** Up to here the names of an object are a list. */
const fewNames = 16
const byteOrderMark = 0xfeff
const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const wordPattern = /true|false|null/y
const escapePattern = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y

/** Maps a text, which may begin with a byte order mark. Throws JsonError. */
export function mapJson(text: string): JsonNode {
  return new Reader(text).document()
}

/**
 * The value of a text, which may begin with a byte order mark; as `JSON.parse`, but strict about names that stand
 * twice. Throws JsonError: `it is not valid JSON at line 3, column 5: ...`, the same on every version of Node.
 */
export function parseJson(text: string): unknown {
  const whole = text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text
  const value = parseStrictly(whole, maxDepth)
  if (value !== undefined) return value
  try {
    mapJson(text)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { line, column } = placeOf(text, error.offset)
    const message = `it is not valid JSON at line ${line}, column ${column}: ${error.message}`
    throw new JsonError(message, error.offset, { cause: error })
  }
  return JSON.parse(whole)
}

/** The line and column of an offset, both from 1. */
export function placeOf(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}

/** The node that a path of names leads to, or undefined. */
export function nodeAt(root: JsonNode, path: readonly string[]): JsonNode | undefined {
  let node: JsonNode | undefined = root
  for (const name of path) node = node?.members?.find((member) => member.name === name)?.value
  return node
}

/** The names of one object. Most objects have few, and then a list is faster to make than a set. */
class KnownNames {
  readonly #few: string[] = []
  #many: Set<string> | undefined

  /** Whether the name is new. */
  add(name: string): boolean {
    const isNew = this.#many === undefined ? !this.#few.includes(name) : !this.#many.has(name)
    if (this.#many !== undefined) this.#many.add(name)
    else if (this.#few.push(name) > fewNames) this.#many = new Set(this.#few)
    return isNew
  }
}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
    if (text.charCodeAt(0) === byteOrderMark) this.#at = 1
  }

  document(): JsonNode {
    this.#space()
    const node = this.#value(0)
    this.#space()
    if (this.#at < this.#text.length) throw this.#error(`nothing may follow the value, but here is ${this.#found()}`)
    return node
  }

  #value(depth: number): JsonNode {
    if (depth > maxDepth) throw this.#error(`nested deeper than ${maxDepth}`)
    const start = this.#at
    switch (this.#text[start]) {
      case '{':
        return this.#object(depth)
      case '[':
        return this.#list(depth)
      case '"':
        this.#string()
        break
      default:
        if (!this.#match(numberPattern) && !this.#match(wordPattern)) {
          throw this.#expected('a value')
        }
    }
    return { start, end: this.#at }
  }

  #object(depth: number): JsonNode {
    const start = this.#at++
    const members: JsonMember[] = []
    const names = new KnownNames()
    this.#space()
    while (this.#text[this.#at] !== '}') {
      const member = this.#member(depth)
      if (!names.add(member.name)) {
        const name = this.#text.slice(member.start, member.nameEnd)
        throw this.#error(`the name ${name} stands twice in this object`, member.start)
      }
      members.push(member)
      this.#separator('}')
    }
    this.#at++
    return { start, end: this.#at, members }
  }

  #member(depth: number): JsonMember {
    const start = this.#at
    if (this.#text[start] !== '"') throw this.#expected('a name in double quotes')
    this.#string()
    const nameEnd = this.#at
    this.#space()
    if (this.#text[this.#at] !== ':') throw this.#expected('a colon after the name')
    this.#at++
    this.#space()
    const value = this.#value(depth + 1)
    const quoted = this.#text.slice(start, nameEnd)
    const name = quoted.includes('\\') ? String(JSON.parse(quoted)) : quoted.slice(1, -1)
    return { name, start, nameEnd, value }
  }

  #list(depth: number): JsonNode {
    const start = this.#at++
    this.#space()
    while (this.#text[this.#at] !== ']') {
      this.#value(depth + 1)
      this.#separator(']')
    }
    this.#at++
    return { start, end: this.#at }
  }

  #separator(closing: string): void {
    this.#space()
    if (this.#text[this.#at] === closing) return
    if (this.#text[this.#at] !== ',') throw this.#expected(`a comma or ${closing}`)
    const comma = this.#at++
    this.#space()
    if (this.#text[this.#at] === closing) throw this.#error(`no comma may stand before the closing ${closing}`, comma)
  }

  #string(): void {
    const start = this.#at++
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === 0x22) break
      if (code === 0x5c) {
        if (!this.#match(escapePattern)) throw this.#error('a backslash begins no escape: write \\\\ for a backslash')
      } else if (code < 0x20 && code !== 0x0a && code !== 0x0d) {
        throw this.#error(`a control character in a text: write \\u${code.toString(16).padStart(4, '0')}`)
      } else if (code < 0x20 || Number.isNaN(code)) {
        throw this.#error('a text that begins here has no closing quote on its line', start)
      } else {
        this.#at++
      }
    }
    this.#at++
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at
    if (!pattern.test(this.#text)) return false
    this.#at = pattern.lastIndex
    return true
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at++
    }
  }

  #found(): string {
    const codePoint = this.#text.codePointAt(this.#at)
    if (codePoint === undefined) return 'the end of the text'
    if (/^\/[/*]/.test(this.#text.slice(this.#at, this.#at + 2))) return 'a comment, which JSON does not have'
    return codePoint === 0x27 ? "' (texts stand in double quotes)" : JSON.stringify(String.fromCodePoint(codePoint))
  }

  #expected(what: string): JsonError {
    return this.#error(`${what} was expected, but here is ${this.#found()}`)
  }

  #error(what: string, offset = this.#at): JsonError {
    return new JsonError(what, offset)
  }
}
