/**
 * Finds the line of a syntax error in an ES module. Node tells it for scripts, but not for a module that was imported:
 * there the error that `import()` gives has neither file nor line.
 *
 * Surprise: the source is compiled, never run, as a script in which `import` and `export` are blanked out. An error
 * inside those statements is not found, and only an error with the very message that Node gave counts.
 */
import { Script } from 'node:vm'
import { tokensBeforeError } from './lexer.ts'
import type { Token } from './lexer.ts'

/**
 * The line, from 1, on which `source` has the syntax error with this message, or undefined.
 *
 * @param message as the JavaScript engine gave it
 */
export function syntaxErrorLine(source: string, message: string): number | undefined {
  const script = withoutImports(source)
  const lines = source.split('\n').length
  // Alone, `await` fails and a function may be declared twice; in a function's block, a bracket too many closes it.
  for (const text of [`'use strict';${script}`, `'use strict';async()=>{{${script}\n}}`]) {
    const line = compileErrorLine(text, message)
    if (line !== undefined) return Math.min(line, lines)
  }
  return undefined
}

function compileErrorLine(text: string, message: string): number | undefined {
  try {
    new Script(text, { filename: 'source.js' })
  } catch (error) {
    if (!(error instanceof SyntaxError) || error.message !== message) return undefined
    const line = /^source\.js:(\d+)\n/.exec(error.stack ?? '')?.[1]
    return line === undefined ? undefined : Number(line)
  }
  return undefined
}

/** The source with `import` and `export` statements made into what a script may hold, each line where it was. */
function withoutImports(source: string): string {
  const tokens = [...tokensBeforeError(source)]
  let result = source
  const blank = (start: number, end: number, replacement = ''): void => {
    const gap = result.slice(start + replacement.length, end).replace(/[^\n]/g, ' ')
    result = result.slice(0, start) + replacement + gap + result.slice(end)
  }
  for (const [index, token] of tokens.entries()) {
    if (token.kind !== 'keyword') continue
    const next = tokens[index + 1]
    if (token.text === 'import' && next?.text === '.') blank(token.start, token.end, 'Object')
    else if (token.text === 'import' && next?.text !== '(') blank(token.start, endOfStatement(tokens, index))
    else if (token.text === 'export' && next?.text === 'default') blank(token.start, next.end, '_=')
    else if (token.text === 'export' && (next?.text === '{' || next?.text === '*')) {
      blank(token.start, endOfStatement(tokens, index))
    } else if (token.text === 'export') blank(token.start, token.end)
  }
  return result
}

/** The end of `import ...` and `export {...}`, from the keyword at `index` on: after its string or its names. */
function endOfStatement(tokens: readonly Token[], index: number): number {
  let at = index + 1
  while (at < tokens.length && tokens[at]?.kind !== 'string' && !endsNames(tokens, at)) at++
  const attributes = tokens[at]?.kind === 'string' && tokens[at + 1]?.text === 'with' && tokens[at + 2]?.text === '{'
  if (attributes) while (at < tokens.length && tokens[at]?.text !== '}') at++
  return tokens[at]?.end ?? tokens[index]?.end ?? 0
}

function endsNames(tokens: readonly Token[], at: number): boolean {
  return tokens[at]?.text === '}' && tokens[at + 1]?.text !== 'from' && tokens[at + 1]?.text !== ','
}
