/**
 * The Host header field: parsing, and which hosts this server serves (`server.allowed_hosts`). A missing port and an
 * explicit 80 or 443 count as equal, since browsers omit the default port of the scheme.
 *
 * Load balancers check the health of a server by its address, so health check paths accept every host.
 */
import { isIPv4, isIPv6 } from 'node:net'
import { HttpError } from './errors.ts'
import { isLoopback, normalizeIp } from './ip-address.ts'

/** A host and its port. */
interface Authority {
  /** Lower case, no trailing dot; IPv6 addresses normalized and without brackets. */
  readonly name: string
  /** 0 to 65535; undefined if absent. */
  readonly port: number | undefined
}

const authorityPattern = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)\.?)(?::(\d{0,5}))?$/
const longestName = 253
/** A name with a trailing dot, and a port. */
const longestAuthority = longestName + '.:65535'.length
/** With and without a trailing slash. */
const healthPaths: ReadonlySet<string> = new Set(['/svc-ready', '/svc-ready/', '/svc-ping', '/svc-ping/'])

/**
 * Parses `host` or `host:port` (RFC 9110 section 7.2, RFC 3986 section 3.2): a name of letters, digits, `-` and `_`, an
 * IPv4 address, or an IPv6 address in brackets.
 * @returns undefined if it is malformed
 */
export function parseAuthority(text: string): Authority | undefined {
  const match = text.length > longestAuthority ? null : authorityPattern.exec(text)
  if (match === null) return undefined
  const [, address, name, digits] = match
  const port = digits === undefined || digits === '' ? undefined : Number(digits)
  if (port !== undefined && port > 65_535) return undefined
  if (name === undefined) {
    const ip = isIPv6(address as string) ? normalizeIp(address as string) : undefined
    return ip === undefined ? undefined : { name: ip, port }
  }
  return name.length > longestName ? undefined : { name: name.toLowerCase(), port }
}

/**
 * Returns the host of a Host header field without its port: lower case, no trailing dot, IPv6 without brackets.
 * @returns undefined if it is malformed or empty
 */
export function hostName(hostHeader: string): string | undefined {
  return parseAuthority(hostHeader)?.name
}

/**
 * Makes the check of `server.allowed_hosts`. An entry is a host (any port) or `host:port`; `*.example.org` matches
 * names with exactly one label more than `example.org`.
 * @param allowed entries that `checkAllowedHost` accepts
 */
export function createHostCheck(allowed: readonly string[]): (hostHeader: string | undefined) => boolean {
  const entries = new Set(allowed.map(entryKey))
  return (hostHeader) => {
    const host = hostHeader === undefined ? undefined : parseAuthority(hostHeader)
    if (host === undefined) return false
    const { name } = host
    const port = portKey(host.port)
    if (entries.has(name) || entries.has(name + port)) return true
    const dot = name.indexOf('.')
    if (dot < 0) return false
    const wildcard = `*${name.slice(dot)}`
    return entries.has(wildcard) || entries.has(wildcard + port)
  }
}

/** The members of a request that the guard reads; see `ReceivedRequest`. */
interface HostedRequest {
  readonly hostField: string | undefined
  readonly hostCount: number
  readonly httpVersion: string
  readonly host: string
  readonly path: string
}

/**
 * Makes the guard that checks every request (RFC 9112, section 3.2). It throws HttpError 400 `bad_host` for a Host
 * field that is missing in HTTP/1.1, duplicated, malformed or not allowed; health check paths accept every host. Behind
 * a trusted proxy, the forwarded host must be allowed. The last valid field is cached, since nearly all requests of a
 * server have the same.
 * @param allowed see `createHostCheck`
 */
export function createHostGuard(allowed: readonly string[]): (request: HostedRequest) => void {
  const isAllowed = createHostCheck(allowed)
  let lastGood: string | undefined
  return (request) => {
    if (request.hostCount > 1) throw badHost('The request has more than one Host field')
    const field = request.hostField
    if (field === undefined && request.httpVersion === '1.1') throw badHost('The request has no Host field')
    if (field !== lastGood) {
      if (field !== undefined && hostName(field) === undefined) throw badHost('The Host field is malformed')
      lastGood = field
    }
    if (allowed.length === 0 || isAllowed(request.host) || healthPaths.has(request.path)) return
    throw badHost('This server does not serve that host')
  }
}

function badHost(message: string): HttpError {
  return new HttpError(400, 'bad_host', message)
}

/**
 * Checks an entry of `server.allowed_hosts`.
 * @returns what the entry must be, to follow its name in a message; undefined if it is valid
 */
export function checkAllowedHost(entry: string): string | undefined {
  const wildcard = entry.startsWith('*.')
  const host = parseAuthority(wildcard ? entry.slice(2) : entry)
  if (host !== undefined && !(wildcard && (isIPv4(host.name) || isIPv6(host.name)))) return undefined
  return 'must be a host such as example.org, example.org:8443, *.example.org or [::1]'
}

/** Whether an address to listen on can be reached only from this machine. */
export function isBoundToLoopback(host: string): boolean {
  return isLoopbackHost(host) || isLoopback(normalizeIp(host) ?? '')
}

/** Whether a Host header field names this machine: localhost, *.localhost, 127.0.0.0/8 or [::1], with any port. */
export function isLoopbackHost(hostHeader: string | undefined): boolean {
  const name = hostHeader === undefined ? undefined : hostName(hostHeader)
  if (name === undefined) return false
  if (name === 'localhost' || name.endsWith('.localhost') || name === '::1') return true
  return isIPv4(name) && name.startsWith('127.')
}

function entryKey(entry: string): string {
  const wildcard = entry.startsWith('*.') ? '*.' : ''
  const { name, port } = parseAuthority(entry.slice(wildcard.length)) as Authority // The entry was checked.
  return wildcard + name + (port === undefined ? '' : portKey(port))
}

/** Begins with a space, which no name has, so that no name with a port equals another name (`::1` with port 1). */
function portKey(port: number | undefined): string {
  return port === undefined || port === 80 || port === 443 ? ' default' : ` ${port}`
}
