/**
 * The parser of `application/x-www-form-urlencoded` (URL standard, section 5.1).
 *
 * Surprise: it is stricter than the standard, which keeps a stray `%` and puts U+FFFD for bytes that are not UTF-8.
 * Here both are refused, as they are in a path: no field arrives other than it was meant.
 */
import { decodeText } from './charset.ts'
import { HttpError } from './errors.ts'
import { addField, Form } from './form.ts'

/** The most fields that a urlencoded form may have. */
export const maxUrlencodedFields = 10_000

/**
 * Reads a form. Empty pieces (`a=1&&b=2`) are passed over; a piece without `=` is a name with an empty value.
 *
 * @throws HttpError 400 `bad_form` for bytes that are not UTF-8, a wrong percent-encoding, or more than
 * {@link maxUrlencodedFields} fields
 */
export function parseUrlencoded(bytes: Buffer): Form {
  const sent = decodeText(bytes, 'utf-8')
  if (sent === undefined) throw badForm('it is not UTF-8')
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

function decode(text: string, count: number): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw badForm(`field ${count} has a percent-encoding that is wrong or not UTF-8`, cause)
  }
}

function badForm(reason: string, cause?: unknown): HttpError {
  return new HttpError(400, 'bad_form', `Cannot read the form: ${reason}`, { cause })
}
