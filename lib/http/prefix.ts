/**
 * The prefix of a request: the path below which its client sees this server, such as `/app`. It is `server.prefix`, or
 * the `X-Forwarded-Prefix` of a trusted proxy, which comes first. Several values of the field are joined in their
 * order, since each proxy appends the part that it has taken off (Traefik, Spring).
 *
 * Surprise: only `server.prefix` is taken off the path of a request. The forwarded prefix completes addresses, nothing
 * else. Many proxies pass the field of a client on; with `/x` in it, `/x/svc-stop` would otherwise pass a proxy that
 * refuses `/svc-` and be served as `/svc-stop`.
 */

/** The prefixes of one server. */
export interface Prefixes {
  /** `server.prefix`; '' for none. */
  readonly own: string
  /**
   * Returns the prefix of a request.
   * @param forwarded the values of `X-Forwarded-Prefix`, joined by commas
   * @param peer the remote address of the connection
   * @returns `own` if the peer is not trusted or a value is invalid
   */
  of(forwarded: string, peer: string): string
}

const maxLength = 256
/** Segments of unreserved characters (RFC 3986, section 2.3), which need no escaping anywhere; no dot segment. */
const grammar = /^(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~-]+)+$/

/**
 * Checks `server.prefix`.
 * @returns what it must be, to follow its name in a message; undefined if it is valid
 */
export function checkPrefix(text: string): string | undefined {
  if (text === '' || isPrefix(text)) return undefined
  return `must be a path such as /app, without a slash at its end, of at most ${maxLength} letters, digits, -, ., _, ~ `
    + 'and slashes, and without . or .. between them'
}

/**
 * Makes the prefixes.
 * @param own a prefix that `checkPrefix` accepts
 * @param trusts whether a remote address is a trusted proxy; undefined if there is none
 * @returns undefined if no request can have a prefix
 */
export function createPrefixes(own: string, trusts: ((peer: string) => boolean) | undefined): Prefixes | undefined {
  if (own === '' && trusts === undefined) return undefined
  return {
    own,
    of(forwarded, peer) {
      if (trusts?.(peer) !== true) return own
      const parts = forwarded.split(',', maxLength).map((part) => part.trim())
      const joined = parts.join('')
      return parts.every(isPrefix) && joined.length <= maxLength ? joined : own
    },
  }
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
