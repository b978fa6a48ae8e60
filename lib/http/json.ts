/**
 * JSON from a client, with the place of a mistake.
 *
 * Surprise: the place is found by a second look of our own. V8's messages name it in some cases only, differ between
 * versions, and quote the text, which may hold a password and must not reach a log.
 */
import { HttpError } from './errors.ts'

/**
 * Parses JSON (RFC 8259). A key `__proto__` becomes an own property like any other and changes no prototype.
 *
 * @throws HttpError 400 `bad_json` with the place, never the text
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const position = jsonErrorPosition(text)
    const before = text.slice(0, position)
    const line = before.split('\n').length
    const column = position - before.lastIndexOf('\n')
    const what = position === text.length ? 'it ends too early, at' : 'it is wrong at'
    const place = `position ${position} (line ${line}, column ${column})`
    throw new HttpError(400, 'bad_json', text === '' ? emptyMessage : `Cannot read the body as JSON: ${what} ${place}`)
  }
}

const emptyMessage = 'Cannot read the body as JSON: it is empty'

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end'

/**
 * Where a text stops being JSON.
 *
 * @returns the index of the first character that cannot stand there, the text's length when it ends too early, -1 when
 * it is JSON; for a number or a word that goes wrong half-way, its beginning will do
 */
export function jsonErrorPosition(text: string): number {
  const open: string[] = []
  let expected: Expected = 'value'
  let at = 0
  for (;;) {
    at = afterSpace(text, at)
    const complete = expected === 'comma or end' && open.length === 0
    if (at === text.length) return complete ? -1 : at
    const character = text.charAt(at)
    const inside = open.at(-1)
    if (expected === 'colon') {
      if (character !== ':') return at
      expected = 'value'
      at += 1
    } else if (character === (inside === '{' ? '}' : ']') && inside !== undefined && mayClose(expected)) {
      open.pop()
      expected = 'comma or end'
      at += 1
    } else if (expected === 'comma or end') {
      if (complete || character !== ',') return at
      expected = inside === '{' ? 'key' : 'value'
      at += 1
    } else if (expected === 'key' || expected === 'key or }') {
      const end = character === '"' ? afterString(text, at) : { at, wrong: true }
      if (end.wrong) return end.at
      expected = 'colon'
      at = end.at
    } else if (character === '{' || character === '[') {
      open.push(character)
      expected = character === '{' ? 'key or }' : 'value or ]'
      at += 1
    } else {
      const end = character === '"' ? afterString(text, at) : afterWord(text, at)
      if (end.wrong) return end.at
      expected = 'comma or end'
      at = end.at
    }
  }
}

function mayClose(expected: Expected): boolean {
  return expected === 'comma or end' || expected === 'key or }' || expected === 'value or ]'
}

function afterSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && ' \t\n\r'.includes(text.charAt(at))) at += 1
  return at
}

interface End {
  readonly at: number
  readonly wrong: boolean
}

function afterString(text: string, from: number): End {
  const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
  let at = from + 1
  while (at < text.length) {
    const character = text.charAt(at)
    if (character === '"') return { at: at + 1, wrong: false }
    if (character < ' ') return { at, wrong: true }
    if (character === '\\') {
      escape.lastIndex = at
      if (!escape.test(text)) return { at, wrong: true }
      at = escape.lastIndex
    } else {
      at += 1
    }
  }
  return { at, wrong: true }
}

function afterWord(text: string, from: number): End {
  const word = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
  word.lastIndex = from
  return word.test(text) ? { at: word.lastIndex, wrong: false } : { at: from, wrong: true }
}
