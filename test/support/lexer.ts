/**
 * A small lexer of JavaScript (ECMA-262, section 12). It finds names, strings and the end of a bracketed piece,
 * whatever strings, templates, comments and regular expressions contain. It does not check the grammar.
 *
 * The tokens before a `/` decide, without a parser, whether it divides or begins a regular expression. After `)` it
 * divides, unless the bracket belongs to `if`, `while`, `for` or `with`. After `}` it divides only if the `{` is
 * in the place of a value. Known mistakes: a regular expression after `for await (...)`, after `of` and after a block
 * that follows `case x:` or a label; a division after a function or class body. `<!--` is not a comment. Tokens of
 * TypeScript are read as well; JSX is not.
 */

/**
 * A name may begin with `#`. A keyword after `.` or `?.` is a name, and so are words that are reserved only in some
 * places (`let`, `of`, `async`). A hashbang line is a comment.
 */
type TokenKind = 'name' | 'keyword' | 'number' | 'string' | 'template' | 'regex' | 'punctuator' | 'comment'

/** A piece of the source from `start` to below `end`, in UTF-16 units. `text` is as written, with its quotes. */
export interface Token {
  readonly kind: TokenKind
  readonly text: string
  readonly start: number
  readonly end: number
}

/** A mistake in a source: a token without an end, a character that begins no token, or one that the caller found. */
export class JavaScriptSyntaxError extends Error {
  override readonly name = 'JavaScriptSyntaxError'
  /** Where the mistake begins, in UTF-16 units from the start of the source. */
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** An open bracket, and whether a `/` right after the closing bracket begins a regular expression. */
interface Bracket {
  readonly closedBy: string
  readonly regexAfter: boolean
}

const keywords = new Set(
  `await break case catch class const continue debugger default delete do else enum export extends false finally for
  function if import in instanceof new null return super switch this throw true try typeof var void while with
  yield`.split(/\s+/),
)
const valueKeywords = new Set(['false', 'null', 'super', 'this', 'true'])
const keywordsBeforeCondition = new Set(['for', 'if', 'while', 'with'])
const beforeBlock = new Set([';', '{', '}', ')', '=>', 'catch', 'do', 'else', 'finally', 'try'])
const singlePunctuators = new Set('{}()[].;,<>+-*/%&|^!~?:=@')
const longPunctuators = new Set(
  `>>>= ... === !== **= <<= >>= >>> &&= ||= ??=
  => == != <= >= && || ?? ?. ++ -- += -= *= /= %= &= |= ^= << >> **`.split(/\s+/),
)
const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }
const unicodeNameStart = /\p{ID_Start}/u
const unicodeNamePart = /[\u200c\u200d\p{ID_Continue}]/u
const unicodeSpace = /[\s\ufeff]/
const nameEscape = /^\\u(?:[0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,8}\})/

/**
 * Reads one token after the other, comments included; between them is only white space. A template literal gives a
 * token of kind `template` for each literal chunk with its marks (`` `a${ ``, `}b${`, `` }c` ``) and, between them, the
 * tokens of the expressions. A closing bracket that closes nothing is a punctuator like any other. Works lazily: the
 * text after the last token taken is not read. The time is proportional to the length.
 *
 * @param start offset of the first character to read; a value is expected there, so `/` begins a regular expression
 * @throws JavaScriptSyntaxError for a string, template, regular expression or comment without an end, or a character
 *   that begins no token
 */
export function* tokenize(source: string, start = 0): Generator<Token, void, undefined> {
  const open: Bracket[] = []
  let regexAllowed = true
  let previous: Token | undefined
  let position = skipSpace(source, start)
  while (position < source.length) {
    const resumesTemplate = source[position] === '}' && open.at(-1)?.closedBy === '`'
    const [kind, end] = readToken(source, position, regexAllowed, resumesTemplate, previous)
    const token: Token = { kind, text: source.slice(position, end), start: position, end }
    yield token
    position = skipSpace(source, token.end)
    if (token.kind === 'comment') continue
    if (resumesTemplate) open.pop()
    regexAllowed = updateBrackets(open, token, previous, regexAllowed)
    previous = token
  }
}

/** Updates the open brackets for `token`. Returns whether a `/` after it begins a regular expression. */
function updateBrackets(open: Bracket[], token: Token, previous: Token | undefined, regexAllowed: boolean): boolean {
  const { kind, text } = token
  if (kind === 'template') {
    if (!text.endsWith('${')) return false
    open.push({ closedBy: '`', regexAfter: false })
    return true
  }
  if (kind === 'keyword') return !valueKeywords.has(text)
  if (kind !== 'punctuator') return false
  const closedBy = closers[text]
  if (closedBy !== undefined) {
    open.push({ closedBy, regexAfter: opensStatement(text, previous, regexAllowed) })
    return true
  }
  if (text === ')' || text === ']' || text === '}') {
    return open.at(-1)?.closedBy === text ? (open.pop()?.regexAfter ?? false) : false
  }
  if (text === '++' || text === '--') return false
  // TypeScript's `value! / 2`: unlike a negation on a new line, it follows the value without a space.
  if (text === '!' && !regexAllowed && previous?.end === token.start) return false
  return true
}

/** Whether a statement follows what this bracket encloses: it is the `(` of a condition or the `{` of a block. */
function opensStatement(text: string, previous: Token | undefined, regexAllowed: boolean): boolean {
  if (previous === undefined || text === '[') return false
  if (text === '(') return previous.kind === 'keyword' && keywordsBeforeCondition.has(previous.text)
  return !regexAllowed || beforeBlock.has(previous.text)
}

/** The kind and the end of the token that begins at `start`. */
function readToken(
  source: string,
  start: number,
  regexAllowed: boolean,
  resumesTemplate: boolean,
  previous: Token | undefined,
): [kind: TokenKind, end: number] {
  const first = source[start] ?? ''
  const second = source[start + 1] ?? ''
  if (first === '"' || first === "'") return ['string', endOfString(source, start, first)]
  if (first === '`' || resumesTemplate) return ['template', endOfTemplateChunk(source, start)]
  if (first === '/' && second === '/') return ['comment', endOfLine(source, start)]
  if (first === '/' && second === '*') return ['comment', endOfBlockComment(source, start)]
  if (first === '/' && regexAllowed) return ['regex', endOfRegex(source, start)]
  if (first === '#' && second === '!' && start === 0) return ['comment', endOfLine(source, start)]
  if (isDigit(source, start) || (first === '.' && isDigit(source, start + 1))) {
    return ['number', endOfNumber(source, start)]
  }
  const nameStart = first === '#' ? start + 1 : start
  const nameEnd = endOfName(source, nameStart)
  if (nameEnd > nameStart) {
    const afterDot = previous?.kind === 'punctuator' && (previous.text === '.' || previous.text === '?.')
    return [!afterDot && keywords.has(source.slice(start, nameEnd)) ? 'keyword' : 'name', nameEnd]
  }
  if (singlePunctuators.has(first)) return ['punctuator', endOfPunctuator(source, start)]
  const character = String.fromCodePoint(source.codePointAt(start) ?? 0)
  throw new JavaScriptSyntaxError(`Unexpected character ${JSON.stringify(character)}`, start)
}

function skipSpace(source: string, start: number): number {
  let at = start
  while (at < source.length && isSpace(source.charCodeAt(at))) at++
  return at
}

function endOfString(source: string, start: number, quote: string): number {
  for (let at = start + 1; at < source.length; at++) {
    const character = source[at]
    if (character === quote) return at + 1
    if (character === '\\') at += source.startsWith('\r\n', at + 1) ? 2 : 1
    else if (character === '\n' || character === '\r') break
  }
  throw new JavaScriptSyntaxError('A string has no closing quote', start)
}

function endOfTemplateChunk(source: string, start: number): number {
  for (let at = start + 1; at < source.length; at++) {
    const character = source[at]
    if (character === '`') return at + 1
    if (character === '\\') at++
    else if (character === '$' && source[at + 1] === '{') return at + 2
  }
  throw new JavaScriptSyntaxError('A template literal has no closing backtick', start)
}

function endOfRegex(source: string, start: number): number {
  let inClass = false
  for (let at = start + 1; at < source.length; at++) {
    if (source[at] === '\\') at++
    else if (source[at] === '[') inClass = true
    else if (source[at] === ']') inClass = false
    else if (source[at] === '/' && !inClass) return endOfNameParts(source, at + 1)
    if (isLineEnd(source.charCodeAt(at))) break
  }
  throw new JavaScriptSyntaxError('A regular expression has no closing slash', start)
}

function endOfBlockComment(source: string, start: number): number {
  const end = source.indexOf('*/', start + 2)
  if (end < 0) throw new JavaScriptSyntaxError('A comment has no closing */', start)
  return end + 2
}

function endOfLine(source: string, start: number): number {
  let at = start
  while (at < source.length && !isLineEnd(source.charCodeAt(at))) at++
  return at
}

/** The end of a number. Whether its digits fit its prefix, and where separators stand, is not checked. */
function endOfNumber(source: string, start: number): number {
  if (source[start] === '0' && 'xXoObB'.includes(source[start + 1] ?? ' ')) return endOfNameParts(source, start + 2)
  let at = endOfDigits(source, start)
  if (source[at] === 'n') return at + 1
  if (source[at] === '.') at = endOfDigits(source, at + 1)
  if (source[at] === 'e' || source[at] === 'E') {
    const digits = source[at + 1] === '+' || source[at + 1] === '-' ? at + 2 : at + 1
    if (isDigit(source, digits)) at = endOfDigits(source, digits)
  }
  return at
}

function endOfDigits(source: string, start: number): number {
  let at = start
  while (isDigit(source, at) || source[at] === '_') at++
  return at
}

/** The end of the name that begins at `start`, or `start` when none does. */
function endOfName(source: string, start: number): number {
  const first = isDigit(source, start) ? start : endOfNameCharacter(source, start, unicodeNameStart)
  return first === start ? start : endOfNameParts(source, first)
}

function endOfNameParts(source: string, start: number): number {
  let at = start
  for (;;) {
    const end = endOfNameCharacter(source, at, unicodeNamePart)
    if (end === at) return at
    at = end
  }
}

function endOfNameCharacter(source: string, at: number, pattern: RegExp): number {
  const code = source.codePointAt(at)
  if (code === undefined) return at
  if (code === 0x5c) return at + (nameEscape.exec(source.slice(at, at + 12))?.[0].length ?? 0)
  if (code < 0x80) return isAsciiNamePart(code) ? at + 1 : at
  return pattern.test(String.fromCodePoint(code)) ? at + (code > 0xffff ? 2 : 1) : at
}

function endOfPunctuator(source: string, start: number): number {
  // In `a?.5:b` the point belongs to the number.
  if (source.startsWith('?.', start) && isDigit(source, start + 2)) return start + 1
  for (let length = 4; length > 1; length--) {
    if (longPunctuators.has(source.slice(start, start + length))) return start + length
  }
  return start + 1
}

function isDigit(source: string, at: number): boolean {
  const code = source.charCodeAt(at)
  return code >= 0x30 && code <= 0x39
}

/** Letters, digits, `$` and `_`. */
function isAsciiNamePart(code: number): boolean {
  const lower = code | 0x20
  return (lower >= 0x61 && lower <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x24 || code === 0x5f
}

function isSpace(code: number): boolean {
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d)
  return unicodeSpace.test(String.fromCharCode(code))
}

function isLineEnd(code: number): boolean {
  return code === 0x0a || code === 0x0d || code === 0x2028 || code === 0x2029
}
