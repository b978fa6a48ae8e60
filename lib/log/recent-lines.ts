/**
 * A line of the general log as the monitor page shows it.
 *
 * Its strings are copies: a slice of a long string (a piece of a request's body, for example) keeps the long one in
 * memory. A process keeps at most 1.4 million characters: 500 lines of 2,692.
 */
import { copyOf } from './line.ts'
import { requestIdOf, textOfRecord, type Level, type LogRecord } from './record.ts'

/** A line of the log. */
export interface LogLine {
  /** In milliseconds since 1970. */
  readonly time: number
  readonly level: Level
  /** At most its first 64 characters. */
  readonly module: string
  /** Without its stack and without control characters; at most its first 500 characters. */
  readonly message: string
  /** The id of the request that the line is about. Present even when the message was truncated. */
  readonly request_id?: string
  /** The lines below the message, if something was thrown; at most their first 2,000 characters. */
  readonly stack?: string
}

/** The number of lines kept. */
export const keptLines = 500
const maxMessageLength = 500
const maxModuleLength = 64
const maxStackLength = 2000

/** Makes a line from a record. Never throws. */
export function logLine(record: LogRecord): LogLine {
  const { timeMs, level, module, stack } = record
  const id = requestIdOf(record)
  return {
    time: timeMs,
    level,
    module: module.slice(0, maxModuleLength),
    message: copyOf(textOfRecord(record), maxMessageLength),
    ...(id !== undefined && { request_id: copyOf(id, id.length) }),
    ...(stack !== '' && { stack: copyOf(stack, maxStackLength) }),
  }
}
