/**
 * The header fields of a request. Asking Node for one makes it build an object of all of them, which most requests
 * never need, so a single field is looked for among those that were sent.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/**
 * A field by its lower-case name; undefined when it was not sent. Of several with one name it is what Node makes of
 * them: a list, or the first.
 */
export function fieldOf(request: IncomingMessage, name: string): string | undefined {
  if (name === 'host') return request.headers.host // That of a target in absolute form stands there (`framing.ts`).
  const sent = request.rawHeaders
  let found: string | undefined
  for (let at = 0; at < sent.length; at += 2) {
    const candidate = sent[at] as string
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue
    if (found !== undefined) return fieldsOf(request.headers)[name]
    found = sent[at + 1]
  }
  return found
}

/**
 * All fields by lower-case name, each one text: an object without prototype. Node's object also has the members of
 * every object, such as `constructor`, and a list for `Set-Cookie`.
 */
export function fieldsOf(headers: IncomingHttpHeaders): Record<string, string> {
  const fields = Object.assign(Object.create(null), headers) as Record<string, string>
  const cookies = headers['set-cookie']
  if (cookies !== undefined) fields['set-cookie'] = cookies.join(', ')
  return fields
}

/** Whether these two header fields announce a body (RFC 9112, section 6.3). */
export function announcesBody(contentLength: string | undefined, transferEncoding: string | undefined): boolean {
  return transferEncoding !== undefined || Number(contentLength ?? 0) > 0
}
