/**
 * Facts about a module that Node does not report: the modules that it imports, and the line of its syntax error.
 */
/** The longest time for Node to check a source file, in milliseconds. */
const checkTimeoutMs = 5000

/** A literal after a keyword that may import it: its quote, then its content. Comments may come before it. */
const imported = /\b(?:from|import|require)(?:[\s(]|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*\n)*(["'`])((?:(?!\1).)+)\1/g
/**
 * A literal that is the first argument of any call. Every call counts, since `createRequire` lets a module give its
 * `require` any name.
 */
const firstArgument = /\((?:\s|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*\n)*(["'`])((?:(?!\1).)+)\1/g

/**
 * Returns the string literals that a JavaScript or TypeScript source imports, with duplicates: those of `import`,
 * `export from`, `import('...')` and `require('...')`. `offset` is the position of the opening quote, in UTF-16 units.
 *
 * Errs on the side of too many: `import type` counts, as do matches in comments and strings and, in a source that
 * contains `createRequire`, any literal that is the first argument of a call. Escapes in a specifier are not decoded.
 */
export function importSpecifiers(source: string): { readonly specifier: string; readonly offset: number }[] {
  const found = [...source.matchAll(imported)]
  if (source.includes('createRequire')) found.push(...source.matchAll(firstArgument))
  return found.map(({ 0: whole, 2: specifier = '', index }) => {
    return { specifier, offset: index + whole.length - specifier.length - 2 }
  })
}

/**
 * Resolves with the line, from 1, of the syntax error with this message in the source of an ES module. The error of
 * `import()` has neither file nor line; `node --check` reports both, in a separate process and without running
 * anything. Resolves with undefined if the source has no such error, or no process can be started.
 * @param message the message of the JavaScript engine
 */
export function syntaxErrorLine(source: string, message: string): Promise<number | undefined> {
  const { spawn } = process.getBuiltinModule('node:child_process') // Loaded where it is used.
  const checked = new Promise<number | undefined>((resolve) => {
    const child = spawn(process.execPath, ['--input-type=module', '--check', '-'], {
      env: {},
      stdio: ['pipe', 'ignore', 'pipe'],
      // If the child cannot be started, the option `timeout` would keep this process alive until then.
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
  return checked.catch(() => undefined) // Under the permission model, spawn throws.
}
