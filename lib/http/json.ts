/**
 * JSON from a client. The message for a text that is not JSON says where the mistake is. V8's own messages do so in
 * some cases only, differ between versions, and quote the text, which may hold a password.
 */
import { HttpError } from './errors.ts'

/** Says what is wrong with a text that is not JSON: `line 2, column 5: ...`. It must quote no value of the text. */
export type ExplainJson = (text: string) => string

/**
 * Parses JSON (RFC 8259). A key `__proto__` becomes an own property like any other and changes no prototype.
 * @param explain unless given, the message does not say where the mistake is
 * @throws HttpError 400 `bad_json`
 */
export function parseJson(text: string, explain: ExplainJson = () => 'it is not valid JSON'): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new HttpError(400, 'bad_json', `Cannot read the body as JSON: ${text === '' ? 'it is empty' : explain(text)}`)
  }
}
