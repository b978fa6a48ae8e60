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
  const text = decodeText(bytes, 'utf-8')
  if (text === undefined) throw badForm('it is not UTF-8')

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
      addField(fields, decode(name, count), decode(value, count))
    }
    at = end + 1
  }
  return new Form(fields, [])
}

function decode(text: string, count: number): string {
  const spaced = text.includes('+') ? text.replaceAll('+', ' ') : text
  if (!spaced.includes('%')) return spaced
  try {
    return decodeURIComponent(spaced)
  } catch (cause) {
    throw badForm(`field ${count} has a percent-encoding that is wrong or not UTF-8`, cause)
  }
}

function badForm(reason: string, cause?: unknown): HttpError {
  return new HttpError(400, 'bad_form', `Cannot read the form: ${reason}`, { cause })
}
