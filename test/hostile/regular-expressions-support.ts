// The regular expressions of `lib/`, and their run time for texts from a hostile client.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tokenize } from '../support/lexer.ts'
import { root } from '../support/launch.ts'

interface Found {
  readonly file: string
  readonly pattern: RegExp
}

const files = readdirSync(join(root, 'lib'), { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
export const sources = files.map((file) => [file, readFileSync(join(root, 'lib', file), 'utf8')] as const)

/** Every pattern literal of a source. */
export function patternsOf(file: string, source: string): Found[] {
  return [...tokenize(source)]
    .filter(({ kind }) => kind === 'regex')
    .map(({ text }) => {
      const end = text.lastIndexOf('/')
      return { file, pattern: new RegExp(text.slice(1, end), text.slice(end + 1)) }
    })
}

const pumps = [
  'a', 'A', '0', '-', '_', '.', ' ', '\t', '\n', '\r\n', '/', '\\', '"', "'", '%', '%41', '%c3', '=', ';', ',', ':', '@', '*', '#', '&', '<', '{', '(', '\0', '\x80', 'é', '\u2028',
  'a.', 'a-', 'a=', ' a', ';a=a', '; a="a"', '\\"', '\\\\', 'a,', ' ,', '::', '1:', '0.', '://', '%00', 'websocket', ' websocket', '\n    ', '@if a\n', '-->', '*/', 'a@', 'svc.',
]

/** Texts that begin as the pattern does, as far as that can be told from its letters, and go on with each pump. */
function hostileTexts(pattern: RegExp, length: number): string[] {
  const start = /^\^?((?:\\[^a-zA-Z0-9]|[^\\^$.*+?()[\]{}|])*)/.exec(pattern.source)?.[1]?.replace(/\\(.)/g, '$1') ?? ''
  const inside = [...new Set(pattern.source.replace(/\\[a-zA-Z]/g, '').match(/[a-zA-Z0-9]+|[^a-zA-Z0-9\\]/g) ?? [])].slice(0, 12)
  return [...pumps, ...inside].flatMap((pump) => {
    const body = pump.repeat(Math.ceil(length / pump.length))
    return start === '' ? [`${body}\u0001`, `"${body}\u0001`] : [`${body}\u0001`, start + body + '\u0001']
  })
}

/** Milliseconds of processor time of this process so far: a busy machine does not add to them. */
function processorMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** The longest processor time in milliseconds that the pattern takes for any of the texts; it stops past the limit. */
export function slowest(pattern: RegExp, length: number, mayTakeMs: number): number {
  let longest = 0
  for (const text of hostileTexts(pattern, length)) {
    const from = processorMs()
    pattern.lastIndex = 0
    pattern.test(text)
    longest = Math.max(longest, processorMs() - from)
    if (longest > mayTakeMs) return longest
  }
  return longest
}

/** Holds every pattern of `lib/` to a second for hostile texts of these lengths. */
export function checkTimes(lengths: readonly number[]): void {
  for (const [file, source] of sources) {
    for (const { pattern } of patternsOf(file, source)) {
      // A pattern that is slow for few characters would never end for many: the shortest come first.
      for (const length of lengths) {
        const ms = slowest(pattern, length, 1000)
        assert.ok(ms < 1000, `${file}: ${pattern} takes ${Math.round(ms)} ms for ${length} characters`)
      }
    }
  }
}
