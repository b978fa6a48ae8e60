/**
 * Expressions of a view: finds where one ends, checks it, and lists the names that it may take from outside. What is an
 * expression, the engine says; no bracket, string or template is understood here to find an end.
 *
 * The list can have too many names: parameters of arrow functions and keys of objects are in it, and where it is not
 * certain what is text (see `codeOf`) the words of texts. Each of them costs one look-up and changes nothing.
 */

import { isBindable, isClosedExpression, syntaxProblem } from './engine.ts'

/** A checked JavaScript expression. */
export interface Expression {
  readonly source: string
  /** The line in the file where it begins, from 1. */
  readonly line: number
  /** The names that it may refer to, each once. */
  readonly names: readonly string[]
}

/** The text between `{{` and `}}`, or between `{!!` and `!!}`. */
interface Enclosed {
  readonly source: string
  readonly names: readonly string[]
  /** The offset after the closing mark. */
  readonly end: number
  /** Whether there are only comments and white space. */
  readonly isEmpty: boolean
}

/** A mistake in an expression. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
  /** Where the mistake begins, in UTF-16 units from the start of the expression. */
  readonly offset: number

  constructor(message: string, offset: number) {
    super(message)
    this.offset = offset
  }
}

/** The most closing marks that are tried as the end of one expression. */
const maxMarks = 1000
const onlyComments = /^(?:\s|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*[\n\r\u2028\u2029])*$/
/** Names with a meaning of their own in the engine, which no declaration changes: a view cannot use them. */
const forbidden = new Set(['arguments', 'eval', 'import'])
/** Names that strict code may declare and a view may not: constants, and a word that is reserved in modules. */
const fixed = new Set(['Infinity', 'NaN', 'await', 'undefined'])
/** The ends of lines by which the engine counts (ECMA-262, section 12.3). */
const lineEnd = /\r\n|[\n\r\u2028\u2029]/g
/** The prefix of the variables of generated code. */
const ownPrefix = 'svc$'
const wholeName = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u
/** A name that is not behind one dot, with its escapes. */
const anyName = /(?<![\p{ID_Continue}$#])(?=[\p{ID_Start}$_\\])(?<!(?:^|[^.])\.\s*)[\p{ID_Continue}$\u200c\u200d\\]+/gu
/** A string, or a template whose `${ }` hold neither quotes nor braces nor slashes; then its end, if it has one. */
const texts = /(?:'(?:[^'\\\n]|\\[^])*|"(?:[^"\\\n]|\\[^])*|`(?:[^`\\$]|\\[^]|\$(?!\{)|\$\{[^`{}'"/]*\})*)(['"`]?)/g
const templatePiece = /\\[^]|\$\{([^}]*)\}|[^]/g
const doubtful = /[`'"]|\/[^]*\//

/**
 * Reads the expression that begins at `start` up to its closing mark: `}}`, or with `raw` `!!}`. It ends at the first
 * mark before which there is an expression, so marks within strings, templates, comments, regular expressions and
 * braces do not end it.
 * @throws ExpressionError when there is none, or a name is not allowed
 */
export function readEnclosed(source: string, start: number, raw: boolean): Enclosed {
  const mark = raw ? '!!}' : '}}'
  const first = source.indexOf(mark, start)
  for (let at = first, tried = 0; at >= 0 && tried < maxMarks; at = source.indexOf(mark, at + 1), tried += 1) {
    const text = source.slice(start, at)
    const end = at + mark.length
    if (onlyComments.test(text)) return { source: text, names: [], end, isEmpty: true }
    if (isClosedExpression(text)) return { source: text, names: namesOf(text), end, isEmpty: false }
  }
  if (first >= 0) checkSyntax(source.slice(start, first))
  throw new ExpressionError(`the "${mark}" that ends the expression is missing`, 0)
}

/**
 * Returns the names of a whole expression.
 * @throws ExpressionError when a name is not allowed
 */
export function namesOf(source: string): readonly string[] {
  const code = codeOf(source)
  const names = new Set<string>()
  for (const { 0: name, index } of (code ?? source).matchAll(anyName)) {
    if (name.startsWith(ownPrefix) || (code !== undefined && name.includes('\\'))) {
      throw new ExpressionError(`the name "${name}" cannot be used in a view`, index)
    }
    if (code !== undefined && forbidden.has(name)) {
      throw new ExpressionError(`"${name}" cannot be used in a view`, index)
    }
    if (isDeclarable(name)) names.add(name)
  }
  return [...names]
}

/**
 * Checks that the text is one JavaScript expression.
 * @throws ExpressionError
 */
export function checkSyntax(source: string): void {
  const problem = syntaxProblem(source)
  if (problem === undefined) return
  const starts = [0, ...[...source.matchAll(lineEnd)].map((end) => end.index + end[0].length)]
  const start = starts[problem.line]
  // A mistake past the last line is at the bracket that the check puts around the expression.
  if (start === undefined) throw new ExpressionError('the expression is not complete', source.length)
  throw new ExpressionError(problem.message, start)
}

/** Whether the text is a name that a view may declare, as `@foreach` does. */
export function isDeclarable(name: string): boolean {
  return wholeName.test(name) && !name.startsWith(ownPrefix) && !fixed.has(name) && isBindable(name)
}

/**
 * The expression with spaces in place of its texts; undefined where it is not certain what is text. Two slashes that
 * are left over may be a regular expression or a comment, and a quote or backtick may belong to one. With one slash, or
 * none, there is neither, and strings begin and end where they seem to.
 */
function codeOf(source: string): string | undefined {
  const code = source.replace(texts, (text, end: string) => {
    if (end !== '`') return end === '' ? text : blank(text)
    return text.replace(templatePiece, (piece, inner?: string) => (inner === undefined ? blank(piece) : `  ${inner} `))
  })
  return doubtful.test(code) ? undefined : code
}

function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ')
}
