/**
 * The header fields of a request. Node would build an object of all fields on first access, which most requests never
 * need, so a single field is searched in the raw list.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'

/**
 * Returns a field by its lower-case name; undefined if it was not sent. Several fields with one name are combined as
 * Node does: a list, or the first.
 */
export function fieldOf(request: IncomingMessage, name: string): string | undefined {
  if (name === 'host') return request.headers.host // Set by `framing.ts` for a target in absolute form.
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
 * Returns all fields by lower-case name, as strings, in an object without prototype. Node's object inherits members
 * such as `constructor`, and has a list for `Set-Cookie`.
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
