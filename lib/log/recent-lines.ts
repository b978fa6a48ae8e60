/**
 * A line of the general log as the monitor page shows it.
 *
 * Its texts are copies: a short string that was cut from a long one (a piece of a request's body, for example) keeps
 * the long one in memory. A process keeps at most 1.4 million characters: 500 lines of 2,692.
 */
import { requestIdOf } from '../http/label.ts'
import { copyOf, escapeControls } from './line.ts'
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
  /** The id of the request, where the message ends with one. It is here even where the message was cut. */
  readonly request_id?: string
  /** The lines below the message, where something was thrown; at most their first 2,000 characters. */
  readonly stack?: string
}

/** How many lines are kept. */
export const keptLines = 500
const maxMessageLength = 500
const maxModuleLength = 64
const maxStackLength = 2000

/** Makes a line of what was logged. It never throws. */
export function logLine(time: number, level: Level, module: string, message: string, stack = ''): LogLine {
  const id = requestIdOf(message)
  return {
    time,
    level,
    module: module.slice(0, maxModuleLength),
    message: escapeControls(copyOf(message, maxMessageLength)).slice(0, maxMessageLength),
    ...(id !== undefined && { request_id: copyOf(id, id.length) }),
    ...(stack !== '' && { stack: copyOf(stack, maxStackLength) }),
  }
}
