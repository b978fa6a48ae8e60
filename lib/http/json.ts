/**
 * JSON from a client, with the place of a mistake. V8's own messages name the place in some cases only, differ between
 * versions, and quote the text, which may hold a password.
 */
import { mapJson, JsonError, placeOf } from '../json/json-map.ts'
import { HttpError } from './errors.ts'

/**
 * Parses JSON (RFC 8259). A key `__proto__` becomes an own property like any other and changes no prototype.
 * @throws HttpError 400 `bad_json` with the place
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpError(
      400,
      'bad_json',
      `Cannot read the body as JSON: ${text === '' ? 'it is empty' : mistakeIn(text)}`,
    )
  }
}

function mistakeIn(text: string): string {
  try {
    mapJson(text)
    return 'it is not valid JSON'
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { line, column } = placeOf(text, error.offset)
    return `line ${line}, column ${column}: ${error.message}`
  }
}
