/**
 * The only place where views turn text into code. A view is code of the application, as a module is: its expressions
 * are JavaScript, which the engine compiles once for each view, never for each request and never with data in them.
 * `node:vm` is used rather than `new Function`, so that `--disallow-code-generation-from-strings` can stay on.
 *
 * Each expression is parsed twice, in `( )` and in `[ ]`. A text that fits both is an expression and nothing more:
 * `a) + (b` fits only the first, `...a` only the second.
 */

import { compileFunction, Script } from 'node:vm'

/** A mistake in an expression: the engine's message, and the line within the expression, from 0. */
interface SyntaxProblem {
  readonly message: string
  readonly line: number
}

/**
 * Parses one expression, as strict code and without running it.
 * @returns the mistake, or undefined when the text is a JavaScript expression (ECMA-262, section 13.16)
 */
export function syntaxProblem(expression: string): SyntaxProblem | undefined {
  return parseProblem(`'use strict';(${expression}\n)`) ?? parseProblem(`'use strict';[${expression}\n]`)
}

/** Whether the text is one expression and no comment is open at its end, as one that begins with `//` is. */
export function isClosedExpression(text: string): boolean {
  return parseProblem(`'use strict';(${text})`) === undefined && parseProblem(`'use strict';[${text}]`) === undefined
}

/** Whether strict code may declare the name, which must look like one: not for a reserved word (ECMA-262, 12.7.2). */
export function isBindable(name: string): boolean {
  return parseProblem(`'use strict';{let ${name}}`) === undefined
}

/**
 * Compiles generated source to a function. `name` is its file name in stack traces.
 * @throws SyntaxError when the source has a mistake, RangeError when it is nested too deep for the engine
 */
export function functionFrom(source: string, parameters: readonly string[], name: string): Function {
  return compileFunction(source, parameters, { filename: name })
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
