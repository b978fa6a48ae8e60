/**
 * Facts about a module that Node does not give: the modules that its source imports, and the line of its syntax error.
 */
/** The longest time for Node to check a source, in milliseconds. */
const checkTimeoutMs = 5000

/** A literal behind a word that may import it: its quote, then what is in it. Comments may stand before it. */
const imported = /\b(?:from|import|require)(?:[\s(]|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*\n)*(["'`])((?:(?!\1).)+)\1/g
/**
 * A literal that is the first argument of any call. Every call counts, since `createRequire` lets a module give its
 * `require` any name.
 */
const firstArgument = /\((?:\s|\/\*(?:[^*]|\*(?!\/))*\*\/|\/\/.*\n)*(["'`])((?:(?!\1).)+)\1/g

/**
 * The string literals that a JavaScript or TypeScript source imports, with repeated ones: those of `import`, `export
 * from`, `import('...')` and `require('...')`. `offset` is where the literal begins with its quote, in UTF-16 units.
 *
 * It finds too much rather than too little: `import type` counts, so does what stands in a comment or a string, and in
 * a source that names `createRequire` a literal at the beginning of the arguments of any call. Escapes in a specifier
 * are not decoded.
 */
export function importSpecifiers(source: string): { readonly specifier: string; readonly offset: number }[] {
  const found = [...source.matchAll(imported)]
  if (source.includes('createRequire')) found.push(...source.matchAll(firstArgument))
  return found.map(({ 0: whole, 2: specifier = '', index }) => {
    return { specifier, offset: index + whole.length - specifier.length - 2 }
  })
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
