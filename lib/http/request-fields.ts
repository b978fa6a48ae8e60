/**
 * The header fields of a request by name, each one a text. In Node's object of them a name may be what every object has,
 * `constructor` say, and `Set-Cookie`, which belongs to answers, is a list. Here one field is found in the list as it came, and
 * the object has no prototype.
 *
 * Surprise: how several fields of one name are told as one (RFC 9110, section 5.3) is left to Node.
 */
import type { IncomingMessage } from 'node:http'
import { asPropertyName } from '../property-name.ts'

/** A request whose target may have named the host, which then stands for the Host field (RFC 9112, section 3.2.2). */
export type AimedRequest = IncomingMessage & { targetHost?: string | undefined }

/** The lower-case forms of names as they were sent: a new text costs V8 most of a microsecond to become a property's name. */
const lowerNames = new Map<string, string>()
/** When there are more, all are forgotten: clients send what they like. */
const mostNames = 256
/** Longer ones are not kept. */
const longestName = 64

/** The field of a lower-case name; undefined when it was not sent. */
export function fieldOf(request: AimedRequest, name: string): string | undefined {
  if (name === 'host' && request.targetHost !== undefined) return request.targetHost
  const raw = request.rawHeaders
  let found: string | undefined
  for (let at = 0; at < raw.length; at += 2) {
    const candidate = raw[at] as string
    if (candidate.length !== name.length || candidate.toLowerCase() !== name) continue
    if (found !== undefined) return joined(request, name) ?? found
    found = raw[at + 1]
  }
  return found
}

/** All fields by lower-case name: an object without prototype. */
export function fieldsOf(request: AimedRequest): Record<string, string> {
  const raw = request.rawHeaders
  const fields = Object.create(null) as Record<string, string>
  for (let at = 0; at < raw.length; at += 2) {
    const name = lowerNameOf(raw[at] as string)
    const before = fields[name]
    fields[name] = before === undefined ? (raw[at + 1] as string) : (joined(request, name) ?? before)
  }
  if (request.targetHost !== undefined) fields['host'] = request.targetHost
  return fields
}

function lowerNameOf(sent: string): string {
  const known = lowerNames.get(sent)
  if (known !== undefined) return known
  const lower = sent.toLowerCase()
  if (sent.length > longestName) return lower
  if (lowerNames.size === mostNames) lowerNames.clear()
  const kept = asPropertyName(lower)
  lowerNames.set(sent, kept)
  return kept
}

/** What Node makes of several fields of one name; undefined for `__proto__`, which its object cannot hold. */
function joined({ headers }: IncomingMessage, name: string): string | undefined {
  if (!Object.hasOwn(headers, name)) return undefined
  const told = headers[name]
  return typeof told === 'object' ? told.join(', ') : told
}
