/**
 * Whether a request says that it comes from another site, which is checked before any token.
 *
 * The first of these header fields that is there decides:
 * 1. `Sec-Fetch-Site` (W3C Fetch Metadata, section 2.4): `same-origin` and `none` (typed, bookmarked) are of this site.
 *    Other values are not, unless `Origin`, or without it `Referer`, names a trusted origin.
 * 2. `Origin` (RFC 6454 section 7): of this host, or a trusted origin.
 * 3. `Referer` (RFC 9110 section 10.1.3): the same.
 * `Origin: null`, or none of the three, says nothing: it is a program, or a browser that was told not to say.
 *
 * Apps and browser extensions have origins of other schemes, such as `capacitor://localhost`. They are trusted where
 * they are named, and never of this host.
 *
 * Surprise: `https` on the same host is of this site even where this server believes that it speaks `http`, since a
 * proxy that ends TLS may not be declared. `http` is not where this server knows that it speaks `https`.
 */
import type { CoreContext } from './context.ts'
import { parseAuthority } from './host.ts'

/** `same`: of this site or a trusted one. `cross`: of another. `unknown`: the request does not say. */
export type OriginVerdict = 'same' | 'cross' | 'unknown'

/** The request, as far as the check reads it. */
type OriginRequest = Pick<CoreContext, 'header' | 'secure' | 'host'>

/** The check that `createOriginCheck` makes. */
export type OriginCheck = (request: OriginRequest) => OriginVerdict

interface Origin {
  readonly scheme: string
  readonly name: string
  /** -1 for the scheme's own port. */
  readonly port: number
}

/** The scheme of RFC 3986, section 3.1. */
const originPattern = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]+)$/i
const refererPattern = /^([a-z][a-z0-9+.-]*):\/\/([^/?#\\]+)(?:[/?#].*)?$/i
/** The ports that browsers leave out. */
const defaultPorts: ReadonlyMap<string, number> = new Map([['http', 80], ['https', 443]])
/** Schemes that no page has: an origin of them would never be sent. */
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
 * @returns what the entry must be, to follow its name in a message; undefined when it is right
 */
export function checkTrustedOrigin(entry: string): string | undefined {
  const origin = readOrigin(originPattern, entry)
  if (origin !== undefined && !schemesWithoutPages.has(origin.scheme)) return undefined
  const examples = 'https://example.org, http://localhost:3000 or capacitor://localhost'
  return `must be the origin of a page or app, such as ${examples}, with nothing after the host and port`
}

/**
 * Whether a request is a prefetch by `Sec-Purpose` (Fetch standard, section 3.2.8) or the `Purpose` of older browsers:
 * the browser asks ahead, and perhaps nobody sees the answer. A prerendered page counts too.
 */
export function isPrefetch(ctx: Pick<CoreContext, 'header'>): boolean {
  return /\bprefetch\b/i.test(`${ctx.header('sec-purpose') ?? ''} ${ctx.header('purpose') ?? ''}`)
}

/** The text by which two origins are compared; undefined when it is none, as `null` is. Case does not matter. */
export function originKey(text: string): string | undefined {
  const origin = readOrigin(originPattern, text)
  return origin === undefined ? undefined : keyOf(origin)
}

/** Whether `Referer` names a page of this host. Trusted origins are other hosts. */
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
