/**
 * The header fields of a request by name. Node makes an object of all of them when one is asked for, and looks each name up
 * in a long list for it; here one field is found in the list as it came, and the object made of it without that look.
 *
 * Surprise: how several fields of one name are told as one (RFC 9110, section 5.3) is left to Node.
 */
import type { IncomingMessage } from 'node:http'

/** A request whose target may have named the host, which then stands for the Host field (RFC 9112, section 3.2.2). */
export type AimedRequest = IncomingMessage & { targetHost?: string | undefined }

/** The field of a lower-case name; undefined when it was not sent. */
export function fieldOf(request: AimedRequest, name: string): string | undefined {
  if (name === 'host' && request.targetHost !== undefined) return request.targetHost
  const raw = request.rawHeaders
  let found: string | undefined
  for (let at = 0; at < raw.length; at += 2) {
    const candidate = raw[at] as string
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue
    if (found !== undefined) return request.headers[name] as string | undefined
    found = raw[at + 1]
  }
  return found
}

/** All fields by lower-case name: an object without prototype. */
export function fieldsOf(request: AimedRequest): Record<string, string> {
  const raw = request.rawHeaders
  let fields = emptyFields()
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] as string).toLowerCase()
    if (fields[name] !== undefined) {
      fields = Object.assign(emptyFields(), request.headers)
      break
    }
    fields[name] = raw[at + 1] as string
  }
  if (request.targetHost !== undefined) fields['host'] = request.targetHost
  return fields
}

function emptyFields(): Record<string, string> {
  return Object.create(null) as Record<string, string>
}
