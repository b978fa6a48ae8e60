/**
 * A session file: its text, JSON with a version (`{"version":1,"fields":[["name","text"],...]}`), and its expiry.
 */
import { isUtf8 } from 'node:buffer'
import type { Fields } from '../session/store.ts'

const version = 1

/**
 * By how much the change time of a file may lie ahead of this clock, in milliseconds: the clock of a file server may
 * differ.
 */
const toleranceMs = 60_000

/** Renders the text of a session file. */
export function toFileText(fields: Fields): string {
  return JSON.stringify({ version, fields: [...fields] })
}

/** Reads the bytes of a session file. Returns its fields, or a message that says what is wrong. Never throws. */
export function fromFileText(bytes: Uint8Array): Fields | string {
  if (bytes.byteLength === 0) return 'it is empty'
  if (!isUtf8(bytes)) return 'it is not UTF-8'
  const value = parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  if (typeof value !== 'object' || value === null) return 'it is no JSON object'
  const { version: written, fields } = value as { version?: unknown; fields?: unknown }
  if (written !== version) return `its version is not ${version}`
  if (!Array.isArray(fields) || !fields.every(isField)) return 'its fields are not pairs of texts'
  return new Map(fields)
}

/**
 * Decides when the files of one folder expire, also when the clock is set meanwhile.
 *
 * A file has the time of its last change. Where that lies ahead, the clock was set back since then, and the time that
 * has really passed is unknown: the session then lives for its whole time from the moment this is noticed. So no valid
 * session is lost, and none lives as long as a clock that was wrong would have it. Nothing is written, so a clock that
 * is put right finds every file as it was.
 */
export class FileExpiry {
  readonly #now: () => number
  readonly #steadyNow: () => number
  /** The ends of files whose change time lies ahead, by name, in the time of `steadyNow`. */
  readonly #ends = new Map<string, number>()

  /**
   * @param now milliseconds since 1970
   * @param steadyNow a clock in milliseconds that does not jump
   */
  constructor(now: () => number, steadyNow: () => number) {
    this.#now = now
    this.#steadyNow = steadyNow
  }

  /**
   * Whether a file has expired.
   * @param changedMs when it was changed, in milliseconds since 1970
   * @param endMs when it expires, by the same clock; not after `changedMs` where this store did not write the time
   */
  isOver(name: string, changedMs: number, endMs: number): boolean {
    const now = this.#now()
    const livesMs = endMs - changedMs
    if (changedMs <= now + toleranceMs || livesMs <= 0) {
      this.#ends.delete(name)
      return endMs <= now
    }
    const steadyNow = this.#steadyNow()
    const end = this.#ends.get(name) ?? steadyNow + livesMs
    this.#ends.set(name, end)
    return end <= steadyNow
  }

  /** Forgets a file that was changed or removed. */
  forget(name: string): void {
    this.#ends.delete(name)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isField(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string')
}
