/**
 * Parses the address of a Redis server: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS, and
 * `redis+unix:///path/of/socket[?db=database]`. No message quotes the address: in a wrong one, any part may be a
 * password.
 */

/** The address of a server, and the account to sign in with. */
export interface RedisTarget {
  /** The path of a Unix socket, or host and port. */
  readonly address: { readonly path: string } | { readonly host: string; readonly port: number; readonly tls: boolean }
  /** Empty: the user `default`. */
  readonly user: string
  /** Empty: the server asks for none. */
  readonly password: string
  /** From 0. */
  readonly database: number
  /** The address for messages, without user and password. */
  readonly label: string
}

/** The address is wrong. The message says why; it begins with `must` and quotes nothing of the address. */
export class RedisUrlError extends Error {
  override readonly name = 'RedisUrlError'
}

/** Replaces the missing host of a Unix socket's address: without a host, URL accepts no user either. */
const noHost = '_'
const defaultPort = 6379
const form = 'redis://, rediss:// or redis+unix://, such as redis://127.0.0.1:6379/0'
const escapes = 'with percent-encoding for characters such as @ : / ? # in user and password'

/**
 * Parses an address.
 * @param password replaces the password of the address; not percent-encoded
 * @throws RedisUrlError
 */
export function parseRedisUrl(text: string, password?: string): RedisTarget {
  const scheme = /^(redis|rediss|redis\+unix):\/\//.exec(text)?.[1]
  if (scheme === undefined) throw new RedisUrlError(`must begin with ${form}`)
  const isSocket = scheme === 'redis+unix'
  const url = parse(isSocket ? text.replace(/^(redis\+unix:\/\/(?:[^/]*@)?)(?=\/)/, `$1${noHost}`) : text)
  if (url.hash !== '') throw new RedisUrlError(`must have no #, ${escapes}`)
  const account = { user: decoded(url.username), password: password ?? decoded(url.password) }
  return { ...account, ...(isSocket ? socketIn(url) : serverIn(url, scheme === 'rediss')) }
}

/** Returns the message of RedisUrlError for a wrong address; undefined for a right one. */
export function problemOfRedisUrl(text: string): string | undefined {
  try {
    parseRedisUrl(text)
    return undefined
  } catch (error) {
    if (error instanceof RedisUrlError) return error.message
    throw error
  }
}

function parse(text: string): URL {
  try {
    return new URL(text)
  } catch {
    throw new RedisUrlError(`must be a URL, ${escapes}`)
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new RedisUrlError('must have user, password and path in percent-encoded UTF-8')
  }
}

function serverIn(url: URL, tls: boolean): Pick<RedisTarget, 'address' | 'database' | 'label'> {
  if (url.search !== '') throw new RedisUrlError(`must have no ?, ${escapes}`)
  if (url.hostname === '') throw new RedisUrlError('must name a host')
  const port = url.port === '' ? defaultPort : Number(url.port)
  if (port === 0) throw new RedisUrlError('must have a port from 1 to 65535')
  const host = decoded(url.hostname)
  const database = databaseIn(url.pathname.replace(/^\//, ''), 'a path, /0 for one')
  const label = `${tls ? 'rediss' : 'redis'}://${host}:${port}${database === 0 ? '' : `/${database}`}`
  return { address: { host: host.replace(/^\[(.*)\]$/, '$1'), port, tls }, database, label }
}

function socketIn(url: URL): Pick<RedisTarget, 'address' | 'database' | 'label'> {
  if (url.hostname !== noHost || url.port !== '') {
    throw new RedisUrlError('must have a path behind redis+unix://, such as redis+unix:///run/redis/redis.sock')
  }
  const names = [...url.searchParams.keys()]
  if (names.some((name) => name !== 'db') || names.length > 1) {
    throw new RedisUrlError('must have no more than db behind ?')
  }
  const path = decoded(url.pathname)
  if (path === '/' || path.includes('\0')) throw new RedisUrlError('must have the path of a socket')
  const database = databaseIn(url.searchParams.get('db') ?? '', 'db=0 for one')
  return { address: { path }, database, label: `redis+unix://${path}${database === 0 ? '' : `?db=${database}`}` }
}

function databaseIn(text: string, example: string): number {
  if (text === '') return 0
  if (/^\d{1,6}$/.test(text)) return Number(text)
  throw new RedisUrlError(`must have the number of a database in it, ${example}`)
}
