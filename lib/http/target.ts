/**
 * The request target (RFC 9112, section 3.2). Nearly all are in origin form, a path; a server must take the absolute
 * form too, and `OPTIONS *` asks about the server as a whole (RFC 9110, section 9.3.7).
 */
import type { IncomingMessage } from 'node:http'
import { parseAuthority } from './host.ts'

/**
 * Puts the target of a request in origin form: `request.url` begins with '/' afterwards, and for the absolute form the
 * Host field is what the target names (section 3.2.2). The `*` of `OPTIONS *` stays: it is the path of no route.
 * @returns false when the target is neither a path nor an `http:` or `https:` URL, nor the `*` of OPTIONS
 */
export function toOriginForm(request: IncomingMessage): boolean {
  const target = request.url as string
  if (target.charCodeAt(0) === 47) return true
  if (target === '*' && request.method === 'OPTIONS') return true
  const parts = /^https?:\/\/([^/?#@\s]+)([/?].*)?$/i.exec(target)
  if (parts === null || parseAuthority(parts[1] as string) === undefined) {
    request.url = '/'
    return false
  }
  const rest = parts[2] ?? '/'
  request.url = rest.startsWith('/') ? rest : `/${rest}`
  request.headers.host = parts[1] as string
  return true
}
