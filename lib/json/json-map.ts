/**
 * Reads JSON texts (RFC 8259) with the positions of their objects, names and values. `JSON.parse` returns the values;
 * the positions are for messages that name a line and for edits that leave every other byte unchanged.
 *
 * Surprise: a duplicate name in an object is an error here. `JSON.parse` silently takes the last.
 */

/** A value, which is `text.slice(start, end)`. Only objects have `members`, only lists `items`. */
export interface JsonNode {
  readonly start: number
  readonly end: number
  readonly members?: readonly JsonMember[]
  readonly items?: readonly JsonNode[]
}

/** A member of an object. Its name with the quotes is `text.slice(start, nameEnd)`. */
interface JsonMember {
  readonly name: string
  readonly start: number
  readonly nameEnd: number
  readonly value: JsonNode
}

/** A text that is not JSON. The message has the position and the reason: `line 3, column 5: expected a value, ...`. */
export class JsonError extends Error {
  override readonly name = 'JsonError'
}

/** The deepest nesting of objects and lists. */
const maxDepth = 100
const byteOrderMark = 0xfeff
const quote = 0x22
const backslash = 0x5c
const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const wordPattern = /true|false|null/y
const escapePattern = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y

/** Maps a text, which may begin with a byte order mark. Throws JsonError. */
export function mapJson(text: string): JsonNode {
  return new Reader(text).document()
}

/**
 * Returns the value of a text with its map; like `JSON.parse`, but rejects duplicate names. Throws JsonError: `it is
 * not valid JSON at line 3, column 5: ...`, the same on every version of Node.
 */
export function readJson(text: string): { readonly value: unknown; readonly root: JsonNode } {
  try {
    const root = mapJson(text)
    return { value: JSON.parse(text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text), root }
  } catch (error) {
    throw new JsonError(`it is not valid JSON at ${(error as Error).message}`, { cause: error })
  }
}

/** Explains why `JSON.parse` refuses a text: `line 2, column 5: ...`. */
export function explainJson(text: string): string {
  try {
    mapJson(text)
    return 'it is not valid JSON'
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return error.message
  }
}

/** A line and a column, both from 1. */
interface TextPlace {
  readonly line: number
  readonly column: number
}

/**
 * Returns a function that converts offsets in a text to lines and columns. It searches for line starts once, at the
 * first call: a search for each of many problems would take quadratic time.
 */
export function createPlaces(text: string): (offset: number) => TextPlace {
  let starts: readonly number[] | undefined
  return (offset) => {
    starts ??= lineStarts(text)
    let line = 0
    for (let end = starts.length; end - line > 1; ) {
      const middle = (line + end) >>> 1
      if ((starts[middle] as number) <= offset) line = middle
      else end = middle
    }
    return { line: line + 1, column: offset - (starts[line] as number) + 1 }
  }
}

function lineStarts(text: string): number[] {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return starts
}

/** Returns the node at a path of names and indexes, or undefined. */
export function nodeAt(root: JsonNode, path: readonly string[]): JsonNode | undefined {
  let node: JsonNode | undefined = root
  for (const name of path) {
    node = node?.members?.find((member) => member.name === name)?.value ?? node?.items?.[Number(name)]
  }
  return node
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
    if (this.#at < this.#text.length) throw this.#error(`expected nothing after the value, but found ${this.#found()}`)
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
        if (!this.#match(numberPattern) && !this.#match(wordPattern)) throw this.#expected('a value')
    }
    return { start, end: this.#at }
  }

  #object(depth: number): JsonNode {
    const start = this.#at++
    const members: JsonMember[] = []
    const names = new Set<string>()
    this.#space()
    while (this.#text[this.#at] !== '}') {
      const member = this.#member(depth)
      if (names.has(member.name)) {
        const name = this.#text.slice(member.start, member.nameEnd)
        throw this.#error(`the name ${name} appears twice in this object`, member.start)
      }
      names.add(member.name)
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
    const items: JsonNode[] = []
    this.#space()
    while (this.#text[this.#at] !== ']') {
      items.push(this.#value(depth + 1))
      this.#separator(']')
    }
    this.#at++
    return { start, end: this.#at, items }
  }

  #separator(closing: string): void {
    this.#space()
    if (this.#text[this.#at] === closing) return
    if (this.#text[this.#at] !== ',') throw this.#expected(`a comma or ${closing}`)
    const comma = this.#at++
    this.#space()
    if (this.#text[this.#at] === closing) throw this.#error(`no comma is allowed before the closing ${closing}`, comma)
  }

  #string(): void {
    const start = this.#at++
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === quote) break
      if (code === backslash) {
        if (!this.#match(escapePattern)) throw this.#error('not an escape sequence: write \\\\ for a backslash')
      } else if (code < 0x20 && code !== 0x0a && code !== 0x0d) {
        throw this.#error(`a control character in a string: write \\u${code.toString(16).padStart(4, '0')}`)
      } else if (code < 0x20 || Number.isNaN(code)) {
        throw this.#error('a string that begins here has no closing quote on its line', start)
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
    return codePoint === 0x27 ? "' (strings need double quotes)" : JSON.stringify(String.fromCodePoint(codePoint))
  }

  #expected(what: string): JsonError {
    return this.#error(`expected ${what}, but found ${this.#found()}`)
  }

  #error(what: string, offset = this.#at): JsonError {
    const { line, column } = createPlaces(this.#text)(offset)
    return new JsonError(`line ${line}, column ${column}: ${what}`)
  }
}
