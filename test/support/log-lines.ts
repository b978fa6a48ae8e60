/** Log lines in the form that tests check. */
import type { LogDetails } from '../../lib/base/ports.ts'
import { silentLogger, type ModuleLogger } from '../../lib/log/logger.ts'
import { levels, textOfRecord, type Level } from '../../lib/log/record.ts'
import { nodeWarnings } from '../../lib/process/safe-node.ts'

/**
 * A log whose lines are kept: `LEVEL text`, with the label, fields and request id that the log would write. The message of
 * what was thrown follows.
 */
export function keepingLogger(keep: (line: string) => unknown, from: Level = 'debug'): ModuleLogger {
  const at = (level: Level) => (message: string, details?: LogDetails): void => {
    const text = textOfRecord({ ...details, timeMs: 0, level, module: '', message, stack: '' })
    const { thrown } = details ?? {}
    const reason = thrown instanceof Error ? thrown.message : String(thrown)
    keep(`${level.toUpperCase()} ${text}${thrown === undefined ? '' : `: ${reason}`}`)
  }
  const written = levels.slice(levels.indexOf(from)).map((level) => [level, at(level)])
  return Object.assign((): void => {}, silentLogger, Object.fromEntries(written), { debugEnabled: from === 'debug' })
}

/** A line without the request id at its end, which lines from WARN up have. */
export function withoutRequestId(line: string): string {
  return line.replace(/ \[[A-Za-z0-9_.-]{8,128}\]$/, '')
}

/** The warnings and errors of a log, except those about a slow machine, and the Node which runs the tests. */
export function complaintsIn(lines: readonly string[]): readonly string[] {
  const ofMachine = ['[metrics] the event loop was blocked', ...nodeWarnings().map((warning) => `[config] ${warning}`)]
  const complaints = lines.filter((line) => /\[(?:WARN|ERROR|FATAL) *\]/.test(line))
  return complaints.filter((line) => !ofMachine.some((text) => line.includes(text)))
}
