/**
 * The header fields of a request by name. Node makes an object of all of them when one is asked for, and looks each name up
 * in a long list for it; here one field is found in the list as it came, and the object is made with the names of the
 * requests before.
 *
 * Surprise: how several fields of one name are told as one (RFC 9110, section 5.3) is left to Node.
 */
import type { IncomingMessage } from 'node:http'
import { asPropertyName } from '../property-name.ts'

/** A request whose target may have named the host, which then stands for the Host field (RFC 9112, section 3.2.2). */
export type AimedRequest = IncomingMessage & { targetHost?: string | undefined }

/** The lower-case forms of names as they were sent. */
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
    const name = lowerNameOf(raw[at] as string)
    if (fields[name] !== undefined) {
      fields = Object.assign(emptyFields(), request.headers)
      break
    }
    fields[name] = raw[at + 1] as string
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

function emptyFields(): Record<string, string> {
  return Object.create(null) as Record<string, string>
}
