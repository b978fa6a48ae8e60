/**
 * Expressions of a view: finds where one ends, checks it, and lists the names that it may take from outside. What is an
 * expression, the engine says; no bracket, string or template is understood here. A view is code of the application, as
 * a module is, and is parsed once, never with data in it.
 *
 * The list has too many names: parameters of arrow functions, keys of objects, words of texts. Each of them costs one
 * look-up and changes nothing.
 */

import { Script } from 'node:vm'

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
  /** The offset after the closing mark. */
  readonly end: number
  /** Whether there are only comments and white space. */
  readonly isEmpty: boolean
}

/** The most closing marks that are tried as the end of one expression. */
const maxMarks = 1000
const onlyComments = /^(?:\s|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*[\n\r\u2028\u2029])*$/
/** Names that strict code may declare and a view may not: constants, and a word that is reserved in modules. */
const fixed = new Set(['Infinity', 'NaN', 'await', 'undefined'])
/** The ends of lines by which the engine counts (ECMA-262, section 12.3). */
const lineEnd = /\r\n|[\n\r\u2028\u2029]/
/** The prefix of the variables of generated code. */
const ownPrefix = 'svc$'
const wholeName = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u
/** A name that is not behind one dot. */
const anyName = /(?<![\p{ID_Continue}$#])(?=[\p{ID_Start}$_])(?<!(?:^|[^.])\.\s*)[\p{ID_Continue}$\u200c\u200d]+/gu

/**
 * Reads the expression that begins at `start` up to its closing mark, `}}` or `!!}`. It ends at the first mark before
 * which there is an expression, so marks within strings, templates, comments, regular expressions and braces do not end
 * it.
 * @throws SyntaxError when there is none
 */
export function readEnclosed(source: string, start: number, mark: string): Enclosed {
  const first = source.indexOf(mark, start)
  for (let at = first, tried = 0; at >= 0 && tried < maxMarks; at = source.indexOf(mark, at + 1), tried += 1) {
    const text = source.slice(start, at)
    const isEmpty = onlyComments.test(text)
    // A comment that is open at the end would go on behind the mark.
    if (isEmpty || errorIn(text, '') === undefined) return { source: text, end: at + mark.length, isEmpty }
  }
  if (first >= 0) checkSyntax(source.slice(start, first))
  throw new SyntaxError(`the "${mark}" that ends the expression is missing`)
}

/**
 * Checks that the text is one JavaScript expression (ECMA-262, section 13.16).
 * @throws SyntaxError, or RangeError when it is nested too deep for the engine
 */
export function checkSyntax(source: string): void {
  const error = errorIn(source, '\n')
  if (error === undefined) return
  // A mistake past the last line is at the bracket that the check puts around the expression.
  const line = Number(/^expression:(\d+)/.exec(error.stack ?? '')?.[1] ?? 0)
  throw line > source.split(lineEnd).length ? new SyntaxError('the expression is not complete') : error
}

/** The names in an expression. */
export function namesOf(source: string): readonly string[] {
  return [...new Set(source.match(anyName))].filter(isDeclarable)
}

/** Whether the text is a name that a view may declare, as `@foreach` does: no reserved word (ECMA-262, 12.7.2). */
export function isDeclarable(name: string): boolean {
  if (!wholeName.test(name) || name.startsWith(ownPrefix) || fixed.has(name)) return false
  return errorIn(`${name} => 0`, '') === undefined
}

/**
 * The engine's error about an expression, which is parsed as strict code, twice, and not run. A text that fits in `( )`
 * and in `[ ]` is an expression and nothing more: `a) + (b` fits only the first, `...a` only the second.
 */
function errorIn(expression: string, end: string): Error | undefined {
  try {
    new Script(`'use strict';(${expression}${end})`, { filename: 'expression' })
    new Script(`'use strict';[${expression}${end}]`, { filename: 'expression' })
    return undefined
  } catch (error) {
    return error as Error // Parsing throws nothing else.
  }
}
