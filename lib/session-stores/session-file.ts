/**
 * A session file: its content, JSON with a version (`{"version":1,"fields":[["name","text"],...]}`), and its expiry.
 */
import { isUtf8 } from 'node:buffer'
import type { Fields } from '../session/store.ts'

const version = 1

/**
 * How far the change time of a file may be ahead of this clock, in milliseconds: the clock of a file server may differ.
 */
const toleranceMs = 60_000

/** Renders the text of a session file. */
export function toFileText(fields: Fields): string {
  return JSON.stringify({ version, fields: [...fields] })
}

/** Parses the bytes of a session file. Returns its fields, or a message about the problem. Never throws. */
export function fromFileText(bytes: Uint8Array): Fields | string {
  if (bytes.byteLength === 0) return 'it is empty'
  if (!isUtf8(bytes)) return 'it is not UTF-8'
  const value = parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString())
  if (typeof value !== 'object' || value === null) return 'it is not a JSON object'
  const { version: written, fields } = value as { version?: unknown; fields?: unknown }
  if (written !== version) return `its version is not ${version}`
  if (!Array.isArray(fields) || !fields.every(isField)) return 'its fields are not pairs of texts'
  return new Map(fields)
}

/**
 * Decides when the files of one folder expire, even if the clock is set meanwhile.
 *
 * A file has the time of its last change. If that is in the future, the clock was set back since then, and the elapsed
 * time is unknown: the session then lives for its whole time to live from the moment this is noticed. So no valid
 * session is lost, and none lives as long as the wrong clock would imply. Nothing is written, so after the clock is
 * corrected every file is unchanged.
 */
export class FileExpiry {
  readonly #now: () => number
  readonly #steadyNow: () => number
  /** The expiry of files with a change time in the future, by name, in the time of `steadyNow`. */
  readonly #ends = new Map<string, number>()

  /**
   * @param now milliseconds since 1970
   * @param steadyNow a monotonic clock in milliseconds
   */
  constructor(now: () => number, steadyNow: () => number) {
    this.#now = now
    this.#steadyNow = steadyNow
  }

  /**
   * Whether a file has expired.
   * @param changedMs when it was changed, in milliseconds since 1970
   * @param endMs when it expires, by the same clock; not after `changedMs` if this store did not write the time
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
