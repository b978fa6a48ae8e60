/**
 * Splits a JavaScript or TypeScript source into tokens and finds matching brackets, without knowing its grammar: the
 * token before a slash decides whether it divides or begins a regular expression.
 */

/** A token; comments and white space are none. */
export interface Token {
  /** A name, number or mark as written; of a string or template its end. */
  readonly text: string
  readonly start: number
  readonly isName: boolean
  /** Whether an expression may end here, so that a slash after it divides. */
  readonly endsValue: boolean
  /** The value of a string, or of a template without substitutions. */
  readonly literal: string | undefined
  /** The index of the bracket that closes this one. */
  close: number | undefined
}

/** White space or a comment; a name or a number; a mark. */
const anyToken = /(^#!.*|\s+|\/\/.*|\/\*[^]*?(?:\*\/|$))|([\p{ID_Continue}$#]+)|\?\.(?!\d)|\.\.\.|\+\+|--|[^]/uy
/** The end of a literal by the mark that begins it, or of a class of a regular expression; and the escapes in it. */
const endings = {
  '"': /\\(?:\r\n|[^])?|["\n\r]/g,
  "'": /\\(?:\r\n|[^])?|['\n\r]/g,
  '`': /\\[^]?|`|\$\{/g,
  '/': /\\.?|[/[\n\r\u2028\u2029]/g,
  '[': /\\.?|[\]\n\r\u2028\u2029]/g,
}
const escape = /\\(?:u\{([\da-f]{1,6})\}|u([\da-f]{4})|x([\da-f]{2})|(\r\n|[^]))/giu
const lineEnd = /[\n\r\u2028\u2029]/
const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v', 0: '\0' }
const closing: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}', '${': '}' }
/** Words before an expression, where a slash begins a regular expression. */
const beforeValue = new Set(
  'await case default delete do else for if in instanceof new of return throw typeof void while with yield'.split(' '),
)
const beforeCondition = /^(?:for|if|while|with)$/

/** Returns the tokens of a source, or what seem to be: it may be any text. Never throws; takes linear time. */
export function tokensOf(source: string): readonly Token[] {
  return new Scanner(source).tokens
}

/** Whether a token is `.` or `?.`. */
export function isDot(token: Token | undefined): boolean {
  return token?.text === '.' || token?.text === '?.'
}

class Scanner {
  readonly tokens: Token[] = []
  readonly #source: string
  /** The indexes of the brackets that are open. */
  readonly #open: number[] = []
  #position = 0
  /** Where the current token begins. */
  #start = 0

  constructor(source: string) {
    this.#source = source
    while (this.#position < source.length) this.#next()
  }

  #next(): void {
    anyToken.lastIndex = this.#position
    const [text, blank, name] = anyToken.exec(this.#source) ?? ['']
    const last = this.tokens.at(-1)
    const followsValue = last?.endsValue === true
    this.#start = this.#position
    this.#position = anyToken.lastIndex
    if (blank !== undefined) return
    if (name !== undefined) this.#add(name, isDot(last) || !beforeValue.has(name), { isName: true })
    else if (text === '"' || text === "'" || text === '`') this.#text(text, true)
    else if (text === '/' && !followsValue) this.#regularExpression()
    else if (text === ')' || text === ']' || text === '}') this.#close(text)
    else {
      if (text in closing) this.#open.push(this.tokens.length)
      // After a value these are postfix operators; `!` is TypeScript's.
      this.#add(text, followsValue && (text === '++' || text === '--' || text === '!'))
    }
  }

  #close(text: string): void {
    const index = this.#open.at(-1) ?? -1
    const opened = this.tokens[index]
    const before = this.tokens[index - 1]
    const isCondition = opened?.text === '(' && before?.endsValue === false && beforeCondition.test(before.text)
    // A brace ends a block far more often than an operand of a division.
    this.#add(text, text !== '}' && !isCondition)
    if (opened === undefined || closing[opened.text] !== text) return
    this.#open.pop()
    opened.close = this.tokens.length - 1
    if (opened.text === '${') this.#text('`', false)
  }

  /** Reads a string, or a template from its start or a substitution to its end or the next substitution. */
  #text(quote: '"' | "'" | '`', isStart: boolean): void {
    const start = this.#position
    const end = this.#seek(endings[quote])
    const literal = isStart && end === quote ? decoded(this.#source.slice(start, this.#position)) : undefined
    this.#position += end.length
    if (end === '${') this.#open.push(this.tokens.length)
    this.#add(end, end !== '${', { literal })
  }

  /** Reads a regular expression up to its flags; one without an end takes the rest of the line. */
  #regularExpression(): void {
    let mark = ''
    do mark = this.#seek(endings[mark === '[' ? '[' : '/'])
    while (mark === '[' || mark === ']')
    this.#position += mark.length
    this.#add('/', true)
  }

  /** Moves to the next mark that is not in an escape. Returns the mark; empty at the end of the source. */
  #seek(marks: RegExp): string {
    marks.lastIndex = this.#position
    let found = marks.exec(this.#source)
    while (found?.[0].startsWith('\\') === true) found = marks.exec(this.#source)
    this.#position = found?.index ?? this.#source.length
    return found?.[0] ?? ''
  }

  #add(text: string, endsValue: boolean, { isName = false, literal }: Partial<Token> = {}): void {
    this.tokens.push({ text, start: this.#start, isName, endsValue, literal, close: undefined })
  }
}

/** Decodes the escapes of a literal (ECMA-262, section 12.9.4). */
function decoded(text: string): string {
  return text.replace(escape, (_, long?: string, short?: string, byte?: string, character = '') => {
    const digits = long ?? short ?? byte
    if (digits !== undefined) return String.fromCodePoint(Math.min(parseInt(digits, 16), 0x10ffff))
    return lineEnd.test(character) ? '' : (controls[character] ?? character)
  })
}
