/**
 * The last lines of the general log, for the monitor page.
 *
 * Messages are kept as bytes: a short string that was cut from a long one (a piece of a request's body, for example)
 * keeps the long one in memory.
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
const slotBytes = maxMessageLength * 3 // a UTF-16 code unit is 3 bytes of UTF-8 at most

/** Keeps the last 500 lines, in less than 1 MiB. */
export class RecentLines {
  readonly #messages = Buffer.alloc(keptLines * slotBytes)
  readonly #sizes = new Uint16Array(keptLines)
  readonly #times = new Float64Array(keptLines)
  readonly #levels: Level[] = []
  readonly #modules: string[] = []
  #next = 0

  /** Keeps a line. It never throws. */
  add(timeMs: number, level: Level, module: string, message: string): void {
    const at = this.#next
    this.#sizes[at] = this.#messages.write(message.slice(0, maxMessageLength), at * slotBytes)
    this.#times[at] = timeMs
    this.#levels[at] = level
    this.#modules[at] = module
    this.#next = (at + 1) % keptLines
  }

  /** The lines, the oldest first. */
  list(): LogLine[] {
    const count = this.#levels.length
    const oldest = count < keptLines ? 0 : this.#next
    return Array.from({ length: count }, (_, index) => this.#line((oldest + index) % keptLines))
  }

  #line(at: number): LogLine {
    const start = at * slotBytes
    const message = this.#messages.toString('utf8', start, start + (this.#sizes[at] as number))
    return {
      time: this.#times[at] as number,
      level: this.#levels[at] as Level,
      module: (this.#modules[at] as string).slice(0, maxModuleLength),
      message: escapeControls(message).slice(0, maxMessageLength),
    }
  }
}
