/**
 * JSON from a client. The message for invalid JSON has the position of the mistake. V8's own messages have it only in
 * some cases, differ between versions, and quote the text, which may contain a password.
 */
import { HttpError } from './errors.ts'

/** Describes the mistake in invalid JSON: `line 2, column 5: ...`. Must not quote any value of the text. */
export type ExplainJson = (text: string) => string

/**
 * Parses JSON (RFC 8259). A key `__proto__` becomes an own property like any other and changes no prototype.
 * @param explain without it, the message has no position
 * @throws HttpError 400 `bad_json`
 */
export function parseJson(text: string, explain: ExplainJson = () => 'it is not valid JSON'): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpError(400, 'bad_json', `Cannot read the body as JSON: ${text === '' ? 'it is empty' : explain(text)}`)
  }
}
