/**
 * A small lexer of JavaScript (ECMA-262, section 12): enough to find names, strings and the end of a bracketed piece
 * without being deceived by what stands in a string, template, comment or regular expression. It checks no grammar.
 *
 * Surprise: whether `/` divides or begins a regular expression is decided from the tokens before it, without a parser.
 * After `)` it divides, unless the bracket belongs to `if`, `while`, `for` or `with`. After `}` it divides only where
 * the `{` stood where a value is expected. Known to be read wrongly: a regular expression after `for await (...)`,
 * after `of` and after a block that follows `case x:` or a label; a division after a function or class body.
 * `<!--` is no comment. TypeScript's tokens are read as well; JSX is not.
 */

/**
 * What a token is. A name may begin with `#`. A keyword after `.` or `?.` is a name, and so are the words that are
 * reserved in places only (`let`, `of`, `async`). A hashbang line is a comment.
 */
export type TokenKind = 'name' | 'keyword' | 'number' | 'string' | 'template' | 'regex' | 'punctuator' | 'comment'

/** A piece of the source from `start` to below `end`, in UTF-16 units. `text` is as written, escapes and quotes too. */
export interface Token {
  readonly kind: TokenKind
  readonly text: string
  readonly start: number
  readonly end: number
}

/** The source has a token without an end, or a character that begins none. */
export class JavaScriptSyntaxError extends Error {
  override readonly name = 'JavaScriptSyntaxError'
  /** Where the token begins, in UTF-16 units from the start of the source. */
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** An open bracket, and whether a `/` right after its closing one begins a regular expression. */
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
 * Reads tokens one after the other, comments included; between them is white space alone. A template literal gives a
 * token of kind `template` for each literal chunk with its marks (`` `a${ ``, `}b${`, `` }c` ``) and, between them, the
 * tokens of the expressions. A closing bracket that closes nothing is a punctuator like any other. Works lazily: what
 * comes after the last token asked for is not looked at. Takes time in proportion to the length.
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
    const token = readToken(source, position, regexAllowed, resumesTemplate, previous)
    yield token
    position = skipSpace(source, token.end)
    if (token.kind === 'comment') continue
    if (resumesTemplate) open.pop()
    regexAllowed = updateBrackets(open, token, previous, regexAllowed)
    previous = token
  }
}

/** The tokens of `source` but for comments; where it cannot be read, those before that place. */
export function* tokensBeforeError(source: string): Generator<Token, void, undefined> {
  try {
    for (const token of tokenize(source)) if (token.kind !== 'comment') yield token
  } catch (error) {
    if (!(error instanceof JavaScriptSyntaxError)) throw error
  }
}

/** Follows the brackets across `token` and tells whether a `/` after it begins a regular expression. */
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
  // TypeScript's `value! / 2`, told from a negation on a new line by standing right after the value.
  if (text === '!' && !regexAllowed && previous?.end === token.start) return false
  return true
}

/** Whether a statement, not an operator, comes after what this bracket closes: a condition's `(` or a block's `{`. */
function opensStatement(text: string, previous: Token | undefined, regexAllowed: boolean): boolean {
  if (previous === undefined || text === '[') return false
  if (text === '(') return previous.kind === 'keyword' && keywordsBeforeCondition.has(previous.text)
  return !regexAllowed || beforeBlock.has(previous.text)
}

function readToken(
  source: string,
  start: number,
  regexAllowed: boolean,
  resumesTemplate: boolean,
  previous: Token | undefined,
): Token {
  const first = source[start] ?? ''
  const second = source[start + 1] ?? ''
  if (first === '"' || first === "'") return token('string', source, start, endOfString(source, start, first))
  if (first === '`' || resumesTemplate) return token('template', source, start, endOfTemplateChunk(source, start))
  if (first === '/' && second === '/') return token('comment', source, start, endOfLine(source, start))
  if (first === '/' && second === '*') return token('comment', source, start, endOfBlockComment(source, start))
  if (first === '/' && regexAllowed) return token('regex', source, start, endOfRegex(source, start))
  if (first === '#' && second === '!' && start === 0) return token('comment', source, start, endOfLine(source, start))
  if (isDigit(source, start) || (first === '.' && isDigit(source, start + 1))) {
    return token('number', source, start, endOfNumber(source, start))
  }
  const nameStart = first === '#' ? start + 1 : start
  const nameEnd = endOfName(source, nameStart)
  if (nameEnd > nameStart) {
    const afterDot = previous?.kind === 'punctuator' && (previous.text === '.' || previous.text === '?.')
    const kind = !afterDot && keywords.has(source.slice(start, nameEnd)) ? 'keyword' : 'name'
    return token(kind, source, start, nameEnd)
  }
  if (singlePunctuators.has(first)) return token('punctuator', source, start, endOfPunctuator(source, start))
  const character = String.fromCodePoint(source.codePointAt(start) ?? 0)
  throw new JavaScriptSyntaxError(`Unexpected character ${JSON.stringify(character)}`, start)
}

function token(kind: TokenKind, source: string, start: number, end: number): Token {
  return { kind, text: source.slice(start, end), start, end }
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

/** Whether the digits fit the prefix, and separators stand between digits, is Node's to say. */
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
  if (code === 0x5c) {
    return at + (nameEscape.exec(source.slice(at, at + 12))?.[0].length ?? 0)
  }
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
