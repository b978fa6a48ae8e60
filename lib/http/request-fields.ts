/**
 * The header fields of a request by name, each one a text. In Node's object of them a name may be what every object
 * has, `constructor` say, and `Set-Cookie`, which belongs to answers, is a list.
 */
import type { IncomingHttpHeaders } from 'node:http'

/** The field of a lower-case name, several of one name joined as Node does; undefined when it was not sent. */
export function fieldOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  return Object.hasOwn(headers, name) ? asText(headers[name]) : undefined
}

/** All fields by lower-case name: an object without prototype. */
export function fieldsOf(headers: IncomingHttpHeaders): Record<string, string> {
  const fields = Object.assign(Object.create(null), headers) as Record<string, string>
  const cookies = asText(headers['set-cookie'])
  if (cookies !== undefined) fields['set-cookie'] = cookies
  return fields
}

function asText(told: string | string[] | undefined): string | undefined {
  return typeof told === 'object' ? told.join(', ') : told
}
