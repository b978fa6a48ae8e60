/**
 * Detects requests from another site, before any token is checked.
 *
 * The first of these header fields that is present decides:
 * 1. `Sec-Fetch-Site` (W3C Fetch Metadata, section 2.4): `same-origin` and `none` (typed, bookmarked) count as same
 *    site. Other values do not, unless `Origin`, or without it `Referer`, is a trusted origin.
 * 2. `Origin` (RFC 6454 section 7): this host, or a trusted origin.
 * 3. `Referer` (RFC 9110 section 10.1.3): likewise.
 * `Origin: null`, or none of the three, means unknown: a program, or a browser configured not to send them.
 *
 * Apps and browser extensions have origins with other schemes, such as `capacitor://localhost`. They are accepted only
 * as trusted origins, never as this host.
 *
 * Surprise: `https` on the same host counts as same site even if this server assumes `http`, since a proxy that
 * terminates TLS may not be declared. `http` does not count if this server knows that the client uses `https`.
 */
import type { CoreContext } from './context.ts'
import { parseAuthority } from './host.ts'

/** `same`: this site or a trusted origin. `cross`: another site. `unknown`: the request has no origin. */
export type OriginVerdict = 'same' | 'cross' | 'unknown'

/** The parts of a request that the check reads. */
type OriginRequest = Pick<CoreContext, 'header' | 'secure' | 'host'>

/** The check that `createOriginCheck` returns. */
export type OriginCheck = (request: OriginRequest) => OriginVerdict

interface Origin {
  readonly scheme: string
  readonly name: string
  /** -1 for the scheme's default port. */
  readonly port: number
}

/** The scheme of RFC 3986, section 3.1. */
const originPattern = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]+)$/i
const refererPattern = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]+)(?:[/?#].*)?$/i
/** The ports that browsers omit. */
const defaultPorts: ReadonlyMap<string, number> = new Map([['http', 80], ['https', 443]])
/** Schemes that no page has, so no request has such an origin. */
const schemesWithoutPages: ReadonlySet<string> = new Set(['ws', 'wss', 'ftp', 'file', 'data', 'blob', 'javascript'])

/**
 * Builds the check.
 * @param trustedOrigins `server.trusted_origins`: `scheme://host` or `scheme://host:port`
 */
export function createOriginCheck(trustedOrigins: readonly string[]): OriginCheck {
  const trusted = new Set(trustedOrigins.map(originKey))

  return (request) => {
    const site = request.header('sec-fetch-site')
    if (site === 'same-origin' || site === 'none') return 'same'
    const sent = request.header('origin')
    if (site === undefined && sent === 'null') return 'unknown'
    const referer = sent === undefined ? request.header('referer') : undefined
    if (site === undefined && sent === undefined && referer === undefined) return 'unknown'
    const origin = sent === undefined ? readOrigin(refererPattern, referer) : readOrigin(originPattern, sent)
    if (origin === undefined) return 'cross'
    if (trusted.has(keyOf(origin))) return 'same'
    return site === undefined && isThisHost(origin, request) ? 'same' : 'cross'
  }
}

/**
 * Checks an entry of `server.trusted_origins`.
 * @returns what the entry must be, to follow its name in a message; undefined if it is valid
 */
export function checkTrustedOrigin(entry: string): string | undefined {
  const origin = readOrigin(originPattern, entry)
  if (origin !== undefined && !schemesWithoutPages.has(origin.scheme)) return undefined
  const examples = 'https://example.org, http://localhost:3000 or capacitor://localhost'
  return `must be the origin of a page or app, such as ${examples}, with nothing after the host and port`
}

/**
 * Whether a request is a prefetch by `Sec-Purpose` (Fetch standard, section 3.2.8) or the `Purpose` of older browsers:
 * the user may never see the response. A prerendered page counts too.
 */
export function isPrefetch(ctx: Pick<CoreContext, 'header'>): boolean {
  return /\bprefetch\b/i.test(`${ctx.header('sec-purpose') ?? ''} ${ctx.header('purpose') ?? ''}`)
}

/** Returns a key to compare origins by, ignoring case; undefined if the text is not an origin, such as `null`. */
export function originKey(text: string): string | undefined {
  const origin = readOrigin(originPattern, text)
  return origin === undefined ? undefined : keyOf(origin)
}

/** Whether `Referer` is a page of this host. Trusted origins do not count. */
export function refererIsHere(request: OriginRequest): boolean {
  const origin = readOrigin(refererPattern, request.header('referer'))
  return origin !== undefined && isThisHost(origin, request)
}

function readOrigin(pattern: RegExp, text: string | undefined): Origin | undefined {
  const match = text === undefined ? null : pattern.exec(text)
  const host = match === null ? undefined : parseAuthority(match[2] as string)
  if (match === null || host === undefined) return undefined
  const scheme = (match[1] as string).toLowerCase()
  return { scheme, name: host.name, port: withoutDefault(scheme, host.port) }
}

function isThisHost(origin: Origin, request: OriginRequest): boolean {
  const host = parseAuthority(request.host)
  const isWeb = origin.scheme === 'https' || (origin.scheme === 'http' && !request.secure)
  if (host === undefined || !isWeb) return false
  return origin.name === host.name && origin.port === withoutDefault(request.secure ? 'https' : 'http', host.port)
}

function withoutDefault(scheme: string, port: number | undefined): number {
  return port === undefined || port === defaultPorts.get(scheme) ? -1 : port
}

function keyOf(origin: Origin): string {
  return `${origin.scheme} ${origin.name} ${origin.port}`
}
