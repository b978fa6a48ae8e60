/**
 * A line of the general log as the monitor page shows it.
 *
 * Its message is a copy: a short string that was cut from a long one (a piece of a request's body, for example) keeps
 * the long one in memory.
 */
import { escapeControls } from './line.ts'
import type { Level } from './logger.ts'

/** A line of the log. */
export interface LogLine {
  /** In milliseconds since 1970. */
  readonly time: number
  readonly level: Level
  /** At most its first 64 characters. */
  readonly module: string
  /** Without its stack and without control characters; at most its first 500 characters. */
  readonly message: string
}

/** How many lines are kept. */
export const keptLines = 500
const maxMessageLength = 500
const maxModuleLength = 64

/** Makes a line of what was logged. It never throws. */
export function logLine(time: number, level: Level, module: string, message: string): LogLine {
  const copy = Buffer.from(message.slice(0, maxMessageLength)).toString()
  const shown = escapeControls(copy).slice(0, maxMessageLength)
  return { time, level, module: module.slice(0, maxModuleLength), message: shown }
}
