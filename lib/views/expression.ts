/**
 * Expressions of a view: finds where one ends, checks it, and lists the names that it may take from outside.
 *
 * The list can have too many names: parameters of arrow functions and keys of objects are in it, since telling them
 * apart needs a parser. Each of them costs one look-up and changes nothing.
 *
 * A mistake is a JavaScriptSyntaxError, whose offset counts from the start of the text that was passed.
 */

import { JavaScriptSyntaxError, tokenize } from '../javascript/lexer.ts'
import type { Token } from '../javascript/lexer.ts'
import { syntaxProblem } from './engine.ts'

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

const closers: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }
/** Names with a meaning of their own in the engine, which no declaration changes: a view cannot use them. */
const forbidden = new Set(['arguments', 'eval', 'import'])
/** Words that strict code cannot declare (ECMA-262, section 12.7.2), and the names of constants. */
const undeclarable = new Set(
  'Infinity NaN implements interface let package private protected public static undefined'.split(' '),
)
/** The ends of lines by which the engine counts (ECMA-262, section 12.3). */
const lineEnd = /\r\n|[\n\r\u2028\u2029]/g
/** The prefix of the variables of generated code. */
const ownPrefix = 'svc$'

/**
 * Reads the expression that begins at `start` up to its closing mark: `}}`, or with `raw` `!!}`. Marks within strings,
 * templates, comments, regular expressions and braces do not end it.
 * @throws JavaScriptSyntaxError when it has no end, or a bracket is not closed
 */
export function readEnclosed(source: string, start: number, raw: boolean): Enclosed {
  const mark = raw ? '!!}' : '}}'
  const reader = new NameReader()
  const open: string[] = []
  let first: number | undefined
  for (const token of tokenize(source, start)) {
    if (token.text === '}' && token.kind === 'punctuator' && open.length === 0) {
      const end = raw ? token.start - 2 : token.start
      if (end < start || !source.startsWith(mark, end)) {
        const reason = `"}" closes nothing, and is not the "${mark}" that ends the expression`
        throw new JavaScriptSyntaxError(reason, token.start)
      }
      const isEmpty = first === undefined || first >= end
      return { source: source.slice(start, end), names: reader.names, end: end + mark.length, isEmpty }
    }
    trackBrackets(open, token)
    reader.read(token)
    if (token.kind !== 'comment') first ??= token.start
  }
  throw new JavaScriptSyntaxError(`the "${mark}" that ends the expression is missing`, start)
}

/**
 * Returns the names of a whole expression.
 * @throws JavaScriptSyntaxError when a token has no end or a name is not allowed
 */
export function namesOf(source: string): readonly string[] {
  const reader = new NameReader()
  for (const token of tokenize(source)) reader.read(token)
  return reader.names
}

/**
 * Checks that the text is one JavaScript expression.
 * @throws JavaScriptSyntaxError
 */
export function checkSyntax(source: string): void {
  const problem = syntaxProblem(source)
  if (problem === undefined) return
  const starts = [0, ...[...source.matchAll(lineEnd)].map((end) => end.index + end[0].length)]
  const start = starts[problem.line]
  // A mistake past the last line is at the bracket that the check puts around the expression.
  if (start === undefined) throw new JavaScriptSyntaxError('the expression is not complete', source.length)
  throw new JavaScriptSyntaxError(problem.message, start)
}

/** Whether the text is a name that a view may declare, as `@foreach` does. */
export function isDeclarable(name: string): boolean {
  if (forbidden.has(name) || undeclarable.has(name) || name.startsWith(ownPrefix)) return false
  return /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u.test(name) && syntaxProblem(name) === undefined
}

class NameReader {
  readonly #names = new Set<string>()
  #previous: Token | undefined

  get names(): readonly string[] {
    return [...this.#names]
  }

  read(token: Token): void {
    if (token.kind === 'comment') return
    const afterDot = this.#previous?.text === '.' || this.#previous?.text === '?.'
    this.#previous = token
    if (afterDot) return
    if (forbidden.has(token.text)) {
      throw new JavaScriptSyntaxError(`"${token.text}" cannot be used in a view`, token.start)
    }
    if (token.kind !== 'name' || undeclarable.has(token.text) || token.text.startsWith('#')) return
    if (token.text.startsWith(ownPrefix) || token.text.includes('\\')) {
      throw new JavaScriptSyntaxError(`the name "${token.text}" cannot be used in a view`, token.start)
    }
    this.#names.add(token.text)
  }
}

/** Updates the stack of expected closing brackets, so that an inner `}` does not end the expression. */
function trackBrackets(open: string[], token: Token): void {
  if (token.kind !== 'punctuator') return
  const closer = closers[token.text]
  if (closer !== undefined) {
    open.push(closer)
  } else if (token.text === ')' || token.text === ']' || token.text === '}') {
    const expected = open.pop()
    if (expected === token.text) return
    const reason = expected === undefined ? 'closes nothing' : `stands where "${expected}" is expected`
    throw new JavaScriptSyntaxError(`"${token.text}" ${reason}`, token.start)
  }
}
