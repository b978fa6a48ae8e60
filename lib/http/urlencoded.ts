/**
 * Parses `application/x-www-form-urlencoded` (URL standard, section 5.1). By the standard a stray `%` is taken
 * literally. Invalid UTF-8 is refused, while the standard replaces it by U+FFFD.
 */
import { isUtf8 } from 'node:buffer'
import type { Charset } from './charset.ts'
import { HttpError } from './errors.ts'
import { addField, Form } from './form.ts'

/** The maximum number of fields of a urlencoded form. */
export const maxUrlencodedFields = 10_000

const escape = /%([0-9a-f]{2})/gi
const strayPercent = /%(?![0-9a-f]{2})/gi

/**
 * Parses a form. Empty pieces (`a=1&&b=2`) are ignored; a piece without `=` is a name with an empty value.
 * @param charset of the bytes and the percent-encoded bytes; default: UTF-8
 * @throws HttpError 400 `bad_form` for invalid UTF-8, and for more than {@link maxUrlencodedFields} fields
 */
export function parseUrlencoded(bytes: Buffer, charset: Charset = 'utf-8'): Form {
  if (charset === 'utf-8' && !isUtf8(bytes)) throw badForm('it is not UTF-8')
  const sent = bytes.toString(charset)
  const decode = charset === 'latin1' ? decodeLatin1 : decodeUtf8
  const text = sent.includes('+') ? sent.replaceAll('+', ' ') : sent
  const isEncoded = text.includes('%')

  const fields = new Map<string, string[]>()
  let count = 0
  for (let at = 0; at < text.length; ) {
    const ampersand = text.indexOf('&', at)
    const end = ampersand < 0 ? text.length : ampersand
    if (end > at) {
      count += 1
      if (count > maxUrlencodedFields) throw badForm(`it has more than ${maxUrlencodedFields} fields`)
      const piece = text.slice(at, end)
      const equals = piece.indexOf('=')
      const name = equals < 0 ? piece : piece.slice(0, equals)
      const value = equals < 0 ? '' : piece.slice(equals + 1)
      if (isEncoded) addField(fields, decode(name, count), decode(value, count))
      else addField(fields, name, value)
    }
    at = end + 1
  }
  return new Form(fields, [])
}

function decodeUtf8(text: string, count: number): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text.replace(strayPercent, '%25'))
  } catch (cause) {
    throw badForm(`field ${count} has percent-encoded bytes that are not UTF-8`, cause)
  }
}

function decodeLatin1(text: string): string {
  return text.replace(escape, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
}

function badForm(reason: string, cause?: unknown): HttpError {
  return new HttpError(400, 'bad_form', `Cannot read the form: ${reason}`, { cause })
}
