/**
 * Expressions of a view: finds where one ends, checks it, and lists the names that it may take from outside. The engine
 * decides what an expression is; this file does not parse brackets, strings or templates. A view is application code,
 * as a module is, and is parsed once, never with data in it.
 *
 * The list errs on the side of too many names: parameters of arrow functions, keys of objects, words in strings. Each
 * extra name costs one look-up and changes nothing.
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

/** The item of a loop, a name or a pattern (ECMA-262, section 14.3.3), and the names that a pattern may refer to. */
export type LoopItem = Omit<Expression, 'line'>

/** The text between `{{` and `}}`, or between `{!!` and `!!}`. */
interface Enclosed {
  readonly source: string
  /** The offset after the closing mark. */
  readonly end: number
  /** Whether it has only comments and white space. */
  readonly isEmpty: boolean
}

/** The most closing marks tried as the end of one expression. */
const maxMarks = 1000
const onlyComments = /^(?:\s|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*[\n\r\u2028\u2029])*$/
/** Names that strict code may declare but a view may not: constants, and a word that is reserved in modules. */
const fixed = new Set(['Infinity', 'NaN', 'await', 'undefined'])
/** The line terminators that the engine counts (ECMA-262, section 12.3). */
const lineEnd = /\r\n|[\n\r\u2028\u2029]/
/** The prefix of the variables of generated code. */
const ownPrefix = 'svc$'
const wholeName = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u
/** A name that does not follow a single dot. */
const anyName = /(?<![\p{ID_Continue}$#])(?=[\p{ID_Start}$_])(?<!(?:^|[^.])\.\s*)[\p{ID_Continue}$\u200c\u200d]+/gu

/**
 * Reads the expression that begins at `start` up to its closing mark, `}}` or `!!}`. It ends at the first mark whose
 * preceding text is a complete expression, so marks within strings, templates, comments, regular expressions and braces
 * do not end it.
 * @throws SyntaxError when no mark ends it, or the first one belongs to another expression
 */
export function readEnclosed(source: string, start: number, mark: string): Enclosed {
  const first = source.indexOf(mark, start)
  for (let at = first, tried = 0; at >= 0 && tried < maxMarks; at = source.indexOf(mark, at + 1), tried += 1) {
    const text = source.slice(start, at)
    const isEmpty = onlyComments.test(text)
    // A comment that is open at the end would continue past the mark.
    if (isEmpty || errorIn(text, '') === undefined) return { source: text, end: at + mark.length, isEmpty }
  }
  const text = source.slice(start, first)
  if (first >= 0 && !/\{\{|\{!!/.test(text)) checkSyntax(text)
  throw new SyntaxError(`the "${mark}" that ends the expression is missing`)
}

/**
 * Checks that the text is one JavaScript expression (ECMA-262, section 13.16).
 * @throws SyntaxError, or RangeError when it is nested too deep for the engine
 */
export function checkSyntax(source: string): void {
  const error = errorIn(source, '\n')
  if (error === undefined) return
  throw isPast(source, error) ? new SyntaxError('the expression is not complete, or has a bracket too many') : error
}

/**
 * Splits `item in list`, of `@foreach`, at the first `in` whose preceding text is a name or a complete pattern, so that
 * an `in` within the defaults of a pattern does not end it.
 * @returns undefined when there is no `in`
 * @throws SyntaxError for an item that a view may not declare
 */
export function readLoop(text: string): { readonly item: LoopItem; readonly list: string } | undefined {
  let first: unknown
  for (const { index } of [...text.matchAll(/(?<=\s)in(?=\s)/g)].slice(0, maxMarks)) {
    const source = text.slice(0, index).trimEnd()
    try {
      return { item: { source, names: namesOfItem(source) }, list: text.slice(index + 'in'.length).trimStart() }
    } catch (error) {
      first ??= error
    }
  }
  if (first !== undefined) throw first
  return undefined
}

/** The names in an expression. */
export function namesOf(source: string): readonly string[] {
  return [...new Set(source.match(anyName))].filter(isDeclarable)
}

/** Whether a view may declare the name, as `@foreach` does: it is not a reserved word (ECMA-262, 12.7.2). */
function isDeclarable(name: string): boolean {
  if (!wholeName.test(name) || name.startsWith(ownPrefix) || fixed.has(name)) return false
  return errorIn(`${name} => 0`, '') === undefined
}

/**
 * Returns the names that the item of a loop may refer to: defaults and computed keys of a pattern use them.
 * @throws SyntaxError when it is not a name or a pattern, or binds a name that a view may not declare
 */
function namesOfItem(item: string): readonly string[] {
  if (!/^[[{]/.test(item)) {
    if (isDeclarable(item)) return []
    throw new SyntaxError(`"${item}" is not a name, or is reserved`)
  }
  // Text that parses as a declaration and as a rest parameter is exactly one pattern, without an initial value.
  const error = errorOf(`{const ${item}\n= 0}`) ?? errorOf(`(...${item}) => 0`)
  if (error !== undefined) {
    throw new SyntaxError(`"${item}": ${isPast(item, error) ? 'the pattern is not complete' : error.message}`)
  }
  const words = [...new Set(item.match(anyName))].filter((word) => errorOf(`{let ${word}}`) === undefined)
  const bound = words.filter((word) => errorOf(`{const ${item} = 0; let ${word}}`) !== undefined)
  const reserved = bound.find((name) => !isDeclarable(name))
  if (reserved !== undefined) throw new SyntaxError(`"${item}": "${reserved}" is reserved`)
  return words.filter((word) => isDeclarable(word) && !bound.includes(word))
}

/** Whether the engine found the mistake past the last line, in what a check adds after the text. */
function isPast(text: string, error: Error): boolean {
  const line = Number(/^expression:(\d+)/.exec(error.stack ?? '')?.[1] ?? 0)
  return line > text.split(lineEnd).length
}

/**
 * Returns the engine's error about an expression, which is parsed twice as strict code, and not run. Text that parses
 * in both `( )` and `[ ]` is exactly one expression: `a) + (b` fits only the first, `...a` only the second.
 */
function errorIn(expression: string, end: string): Error | undefined {
  return errorOf(`(${expression}${end})`) ?? errorOf(`[${expression}${end}]`)
}

/** Returns the engine's error about a statement, which is parsed as strict code, and not run. */
function errorOf(statement: string): Error | undefined {
  try {
    new Script(`'use strict';${statement}`, { filename: 'expression' })
    return undefined
  } catch (error) {
    return error as Error // Parsing throws nothing else.
  }
}
