/**
 * Parses the address of a Redis server: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, and
 * `redis+unix:///path/of/socket[?db=database]`. No message quotes the address: any part of a malformed one may be a
 * password.
 */

/** The address of a server, and the account to sign in with. */
export interface RedisTarget {
  /** The path of a Unix socket, or host and port. */
  readonly address: { readonly path: string } | { readonly host: string; readonly port: number; readonly tls: boolean }
  /** Empty: the user `default`. */
  readonly user: string
  /** Empty: the server requires none. */
  readonly password: string
  /** From 0. */
  readonly database: number
  /** The address for messages, without user and password. */
  readonly label: string
}

const problem = 'must be redis://[user:password@]host[:port][/database], the same with rediss:// for TLS, or'
  + ' redis+unix:///path/of/socket[?db=database], with percent-encoding for characters such as @ : / ? # in user and'
  + ' password'
/** Scheme, user, password, and what follows. */
const form = /^(rediss?|redis\+unix):\/\/(?:([^:@/?#]*)(?::([^@/?#]*))?@)?([^@#]+)$/
/** Host, port and database. */
const serverForm = /^(\[[\dA-Fa-f:.]+\]|[^:[\]/?]+)(?::(\d{1,5}))?(?:\/(\d{1,6})?)?$/
/** Path and database. */
const socketForm = /^(\/[^?]+)(?:\?db=(\d{1,6}))?$/

/**
 * Parses an address.
 * @param password replaces the password of the address; not percent-encoded
 * @throws Error or URIError for an address for which `problemOfRedisUrl` returns a problem
 */
export function parseRedisUrl(text: string, password?: string): RedisTarget {
  const [, scheme, user = '', urlPassword = '', rest = ''] = form.exec(text) ?? []
  const account = { user: decodeURIComponent(user), password: password ?? decodeURIComponent(urlPassword) }
  if (scheme === 'redis+unix') {
    const [, encodedPath = '', number = '0'] = socketForm.exec(rest) ?? []
    const path = decodeURIComponent(encodedPath)
    if (path === '' || path.includes('\0')) throw new Error(problem)
    const database = Number(number)
    const label = `redis+unix://${path}${database === 0 ? '' : `?db=${database}`}`
    return { ...account, address: { path }, database, label }
  }
  const [, encodedHost = '', portText = '6379', number = '0'] = serverForm.exec(rest) ?? []
  const [host, port, database] = [decodeURIComponent(encodedHost), Number(portText), Number(number)]
  if (host === '' || port < 1 || port > 65_535) throw new Error(problem)
  const address = { host: host.replace(/^\[(.*)\]$/, '$1'), port, tls: scheme === 'rediss' }
  return { ...account, address, database, label: `${scheme}://${host}:${port}${database === 0 ? '' : `/${database}`}` }
}

/** Returns the problem with an address; undefined for a valid one. */
export function problemOfRedisUrl(text: string): string | undefined {
  try {
    parseRedisUrl(text)
    return undefined
  } catch {
    return problem
  }
}
