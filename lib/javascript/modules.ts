/**
 * Facts about a module that Node does not give: the modules that its source imports, and the line of its syntax error.
 */
import { JavaScriptSyntaxError, tokenize, type Token } from './lexer.ts'

/** The longest time for Node to check a source, in milliseconds. */
const checkTimeoutMs = 5000

/**
 * The string literals that a JavaScript or TypeScript source imports, in order and with repeated ones: those of
 * `import`, `export from`, `import('...')` and `require('...')`. `offset` is where the literal begins with its quote,
 * in UTF-16 units. When the source has a syntax error, the result has those before it.
 *
 * It finds too much rather than too little: `import type` counts, and in a source that names `createRequire` so does a
 * literal at the beginning of the arguments of any call. Escapes in a specifier are not decoded.
 */
export function importSpecifiers(source: string): { readonly specifier: string; readonly offset: number }[] {
  const found: { specifier: string; offset: number }[] = []
  const anyCall = source.includes('createRequire')
  let beforeLast: Token | undefined
  let last: Token | undefined
  try {
    for (const token of tokenize(source)) {
      if (token.kind === 'comment') continue
      const isLiteral = token.kind === 'string' || (token.kind === 'template' && /^`.*`$/s.test(token.text))
      if (isLiteral && importsNext(beforeLast, last, anyCall)) {
        found.push({ specifier: token.text.slice(1, -1), offset: token.start })
      }
      beforeLast = last
      last = token
    }
  } catch (error) {
    if (!(error instanceof JavaScriptSyntaxError)) throw error
  }
  return found
}

/** Whether a literal after these two tokens is imported. */
function importsNext(beforeLast: Token | undefined, last: Token | undefined, anyCall: boolean): boolean {
  if (last?.text === 'import' || last?.text === 'from') return true
  if (last?.text !== '(' || beforeLast === undefined) return false
  return beforeLast.text === 'import' || beforeLast.text === 'require' || (anyCall && beforeLast.kind === 'name')
}

/**
 * The line, from 1, on which the source of an ES module has the syntax error with this message. The error of `import()`
 * has neither file nor line; `node --check` reports both, in a process of its own and without running anything.
 * Resolves with undefined when the source has no such error, or no process can be started.
 * @param message as the JavaScript engine gave it
 */
export function syntaxErrorLine(source: string, message: string): Promise<number | undefined> {
  const { spawn } = process.getBuiltinModule('node:child_process') // Loaded where it is used.
  const checked = new Promise<number | undefined>((resolve) => {
    const child = spawn(process.execPath, ['--input-type=module', '--check', '-'], {
      env: {},
      stdio: ['pipe', 'ignore', 'pipe'],
      // The option `timeout` would keep this process alive for as long when the child cannot be started.
      signal: AbortSignal.timeout(checkTimeoutMs),
    })
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
    child.stdin.on('error', () => {}).end(source) // The child may end before it has read everything.
    child.on('error', () => resolve(undefined))
    child.on('close', () => {
      const line = /^\[stdin\]:(\d+)$/m.exec(output)?.[1]
      resolve(line !== undefined && output.includes(`SyntaxError: ${message}\n`) ? Number(line) : undefined)
    })
  })
  return checked.catch(() => undefined) // The permission model has spawn throw.
}
