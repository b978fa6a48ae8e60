/**
 * Decodes bodies and form fields. Invalid UTF-8 is refused, never replaced by U+FFFD: an action gets what the client
 * sent.
 */
import { isUtf8 } from 'node:buffer'
import { HttpError } from './errors.ts'

/** The supported encodings. */
export type Charset = 'utf-8' | 'latin1'

const charsets: ReadonlyMap<string, Charset> = new Map([
  ['utf-8', 'utf-8'],
  ['utf8', 'utf-8'],
  ['us-ascii', 'utf-8'],
  ['ascii', 'utf-8'],
  ['iso-8859-1', 'latin1'],
  ['latin1', 'latin1'],
])

/**
 * Returns the encoding of a `charset` parameter. US-ASCII is read as UTF-8, which contains it.
 * @param label the parameter's value, `undefined` for UTF-8
 * @throws HttpError 415 `unsupported_media_type` for any other
 */
export function charsetOf(label: string | undefined): Charset {
  if (label === undefined) return 'utf-8'
  const charset = charsets.get(label.toLowerCase())
  if (charset !== undefined) return charset
  const shown = label.slice(0, 40)
  throw new HttpError(
    415,
    'unsupported_media_type',
    `Cannot read the body: its charset must be utf-8, us-ascii or iso-8859-1: it is ${JSON.stringify(shown)}`,
  )
}

/**
 * Decodes bytes. A byte order mark at the beginning of UTF-8 is dropped.
 * @returns `undefined` if the bytes should be UTF-8 and are not
 */
export function decodeText(bytes: Buffer, charset: Charset): string | undefined {
  if (charset === 'latin1') return bytes.toString('latin1')
  if (!isUtf8(bytes)) return undefined
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
  return bytes.toString('utf8', marked ? 3 : 0)
}
