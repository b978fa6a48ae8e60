/**
 * Renders a thrown value below its log line: its message, its stack frames, and those of its causes.
 *
 * Anything can be thrown, and an error's `stack` may be missing, replaced or a getter that throws. There is always at
 * least one line, and each begins with four spaces, which distinguishes it from a line of the log.
 */
import { isError, textOf } from '../base/reason.ts'
import { escapeControls } from './line.ts'

const maxErrors = 16
const indent = '    '

/**
 * Returns the lines for a thrown value, without line ends. Each begins with four spaces and has no control characters.
 * `cause` and the `errors` of an AggregateError follow, at most 16 errors in total, without repetition.
 */
export function stackLines(thrown: unknown): string[] {
  const lines: string[] = []
  addLines(lines, thrown, '', new Set())
  return lines
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
