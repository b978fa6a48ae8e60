/**
 * The one place where views turn text into code. A view is code of the application, as a module is, and its expressions
 * are JavaScript: they are given to the engine, once for each view, never for each request and never with data in them.
 * `node:vm` is used rather than `new Function`, so that `--disallow-code-generation-from-strings` can stay on.
 *
 * Surprise: each expression is parsed twice, in `( )` and in `[ ]`. A text that fits both is an expression and nothing
 * more: `a) + (b` fits the first alone, `...a` the second.
 */

import { compileFunction, Script } from 'node:vm'

/** A mistake in an expression: the engine's words, and the line within the expression, from 0. */
export interface SyntaxProblem {
  readonly message: string
  readonly line: number
}

/** A function made of text. */
export type Generated = (...values: unknown[]) => unknown

/**
 * Parses one expression, as strict code and without running it.
 * Returns what is wrong with it, or undefined when it is a JavaScript expression (ECMA-262, section 13.16).
 */
export function syntaxProblem(expression: string): SyntaxProblem | undefined {
  return parseProblem(`'use strict';(${expression}\n)`) ?? parseProblem(`'use strict';[${expression}\n]`)
}

/**
 * Makes a function of generated source. `name` is what stack traces call it.
 * @throws SyntaxError when the source is none, RangeError when it is nested too deep for the engine
 */
export function functionFrom(source: string, parameters: readonly string[], name: string): Generated {
  // The type that Node declares is `Function`; what it makes is one that takes and returns anything.
  return compileFunction(source, parameters, { filename: name }) as Generated
}

function parseProblem(source: string): SyntaxProblem | undefined {
  try {
    new Script(source, { filename: 'expression' })
    return undefined
  } catch (error) {
    if (!(error instanceof Error)) throw error
    const line = Number(/^expression:(\d+)/.exec(error.stack ?? '')?.[1] ?? 1) - 1
    return { message: error.message, line }
  }
}
