/**
 * Finds the line of a syntax error in an ES module. The error that `import()` gives has neither file nor line; Node
 * tells both when it only checks a source (`node --check`), which it does in a process of its own and without running
 * anything.
 */

/** The longest that Node may take to check a source, in milliseconds. */
const timeoutMs = 5000

/**
 * The line, from 1, on which the source of an ES module has the syntax error with this message. Resolves with undefined
 * where it has none, or where no process may be started.
 * @param message as the JavaScript engine gave it
 */
export function syntaxErrorLine(source: string, message: string): Promise<number | undefined> {
  const { spawn } = process.getBuiltinModule('node:child_process') // Loaded where it is used.
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['--input-type=module', '--check', '-'], {
      env: {},
      stdio: ['pipe', 'ignore', 'pipe'],
      signal: AbortSignal.timeout(timeoutMs), // `timeout` would keep the process for as long where none can be started.
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    child.stdin.on('error', () => {}).end(source) // It may end before it has read all.
    child.on('error', () => resolve(undefined))
    child.on('close', () => {
      const line = /^\[stdin\]:(\d+)$/m.exec(said)?.[1]
      resolve(line !== undefined && said.includes(`SyntaxError: ${message}\n`) ? Number(line) : undefined)
    })
  })
}
