/**
 * Renders a thrown value below its log line: its message, its stack frames, and those of its causes.
 *
 * Anything can be thrown, and an error's `stack` may be missing, replaced or a getter that throws. There are always
 * some lines, and each begins with four spaces, which tells it from a line of the log.
 */
import { inspect } from 'node:util'
import { escapeControls } from './line.ts'

const maxErrors = 16
const indent = '    '

/**
 * The lines for a thrown value, without line ends. Each begins with four spaces and has no control character.
 * `cause` and the `errors` of an AggregateError follow, 16 errors in all; none is repeated.
 */
export function stackLines(thrown: unknown): string[] {
  const lines: string[] = []
  addLines(lines, thrown, '', new Set())
  return lines
}

/** One value as text: an error's stack, else the result of `util.inspect`. Never empty. */
export function textOf(value: unknown): string {
  try {
    if (isError(value) && typeof value.stack === 'string' && value.stack.trim() !== '') return value.stack
    return inspect(value, { breakLength: Number.POSITIVE_INFINITY, customInspect: false })
  } catch {
    return '(a value that cannot be shown)'
  }
}

/** Whether the value is an Error. False for a revoked proxy, where `instanceof` throws. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error
  } catch {
    return false
  }
}

function addLines(lines: string[], thrown: unknown, label: string, seen: Set<unknown>): void {
  if (seen.has(thrown) || seen.size >= maxErrors) return
  seen.add(thrown)
  const text = label + textOf(thrown)
  for (const line of text.split('\n')) {
    if (line.trim() !== '') lines.push(escapeControls(line.startsWith(indent) ? line : indent + line))
  }
  for (const each of membersOf(thrown)) addLines(lines, each.value, each.label, seen)
}

function membersOf(thrown: unknown): { label: string; value: unknown }[] {
  try {
    if (!isError(thrown)) return []
    const members = thrown instanceof AggregateError ? [...thrown.errors] : []
    const found = members.map((value: unknown) => ({ label: 'one of: ', value }))
    return thrown.cause === undefined ? found : [{ label: 'caused by: ', value: thrown.cause }, ...found]
  } catch {
    return [] // a getter or an iterator of the error threw; the error itself is already shown
  }
}
