/**
 * The text of a session file: JSON with a version, `{"version":1,"fields":[["name","text"],...]}`.
 */
import { isUtf8 } from 'node:buffer'
import type { Fields } from '../session/store.ts'

const version = 1

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
