/**
 * The prefix of a request: the path below which its client sees this server, such as `/app`. It is `server.prefix`, or
 * the one `X-Forwarded-Prefix` of a trusted proxy, which comes first.
 *
 * Surprise: only `server.prefix` is taken off the path of a request. The forwarded prefix completes addresses, nothing
 * else. Many proxies pass the field of a client on; with `/x` in it, `/x/svc-stop` would otherwise pass a proxy that
 * refuses `/svc-` and be served as `/svc-stop`.
 */
import { RateLimited } from '../base/rate-limited.ts'
import type { LogPort } from '../base/ports.ts'

/** The prefixes of one server. */
export interface Prefixes {
  /** `server.prefix`; '' for none. */
  readonly own: string
  /**
   * Returns the prefix of a request.
   * @param forwarded the values of `X-Forwarded-Prefix`, joined by commas; not empty
   * @param peer the remote address of the connection
   * @returns `own` if the peer is not trusted, or, with a warning, if the field is invalid or came more than once
   */
  of(forwarded: string, peer: string): string
}

const maxLength = 256
const mustBe = 'must be a path such as /app, without a slash at its end, '
  + `of at most ${maxLength} letters, digits, -, ., _, ~ and slashes, and without . or .. between them`
/** Segments of unreserved characters (RFC 3986, section 2.3), which need no escaping anywhere; no dot segment. */
const grammar = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/

/**
 * Checks `server.prefix`.
 * @returns what it must be, to follow its name in a message; undefined if it is valid
 */
export function checkPrefix(text: string): string | undefined {
  return text === '' || isPrefix(text) ? undefined : mustBe
}

/**
 * Makes the prefixes.
 * @param own a prefix that `checkPrefix` accepts
 * @param trusts whether a remote address is a trusted proxy; undefined if there is none
 * @param warn receives a line about a field of a trusted proxy that is passed over, at most one a minute
 * @returns undefined if no request can have a prefix
 */
export function createPrefixes(
  own: string,
  trusts: ((peer: string) => boolean) | undefined,
  warn: LogPort['warn'],
): Prefixes | undefined {
  if (own === '' && trusts === undefined) return undefined
  const warnings = new RateLimited(warn, 60_000)
  return {
    own,
    of(forwarded, peer) {
      if (trusts?.(peer) !== true) return own
      if (isPrefix(forwarded)) return forwarded
      const shown = JSON.stringify(forwarded.slice(0, maxLength))
      warnings.say(`X-Forwarded-Prefix from ${peer} has no effect: it ${mustBe}: it is ${shown}`)
      return own
    },
  }
}

/** Returns the path of the server's own cookies: the prefix, or `/` for none and for a `__Host-` name (RFC 6265bis). */
export function cookiePath(prefix: string, name: string): string {
  return prefix === '' || /^__host-/i.test(name) ? '/' : prefix
}

/** Returns the path below a prefix; the path itself if it is not below it, or the prefix is ''. */
export function pathBelow(prefix: string, path: string): string {
  if (prefix === '' || !path.startsWith(prefix)) return path
  if (path.length === prefix.length) return '/'
  return path[prefix.length] === '/' ? path.slice(prefix.length) : path
}

function isPrefix(text: string): boolean {
  return text.length <= maxLength && grammar.test(text)
}
