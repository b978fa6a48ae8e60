/**
 * Reads and writes cookies (RFC 6265bis sections 4.1 and 4.2).
 *
 * `parseCookies` returns every text that `serializeCookie` has written: bytes that a cookie value cannot hold, and `%`,
 * are percent-encoded, others are sent as they are.
 *
 * Of two cookies with the same name the first counts. Browsers send the one with the longer path first, which is the
 * one nearer to the page.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { isToken } from '../base/token.ts'

type SameSite = (typeof sameSites)[number]

/** The attributes of a cookie. */
export interface CookieAttributes {
  /** Seconds, an integer; 0 or less: the browser drops it. Without it and `expires`, it ends with the browser. */
  readonly maxAge?: number
  /** From 1601 to 9999. `maxAge` goes before it. */
  readonly expires?: Date
  /** `/` unless given; begins with `/`. */
  readonly path?: string
  /** This host alone unless given; with it, its subdomains too. */
  readonly domain?: string
  /** true unless given. */
  readonly httpOnly?: boolean
  /** Unless given, true on TLS. */
  readonly secure?: boolean
  /** `Lax` unless given, in upper or lower case; `None` needs `secure`. */
  readonly sameSite?: SameSite | Lowercase<SameSite>
  /** Keeps the cookie apart for each site that embeds this one (CHIPS); false unless given; needs `secure`. */
  readonly partitioned?: boolean
}

/** Defaults of a cookie's attributes. */
interface CookieDefaults {
  /** Whether the request came over TLS. */
  readonly secure: boolean
}

/** The most bytes of name and value together that browsers accept (RFC 6265bis section 5.6). */
const maxCookieBytes = 4096
/** The most bytes of `path` and `domain` that browsers accept (RFC 6265bis section 5.6). */
const maxCookieAttributeBytes = 1024

const attributeNames = ['maxAge', 'expires', 'path', 'domain', 'httpOnly', 'secure', 'sameSite', 'partitioned']
const sameSites = ['Strict', 'Lax', 'None'] as const
const notAsItIs = /[^\x21\x23\x24\x26-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+/g
const encoded = /[%\x80-\xff]/
const brokenEncoding = /%(?![0-9a-f]{2})/i
const domainShape = /^\.?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i
const firstExpiry = Date.UTC(1601, 0, 1)
const lastExpiry = Date.UTC(9999, 11, 31, 23, 59, 59)

/**
 * Reads a Cookie header. Never throws. Pieces without `=` or without a name are ignored; quotes around a value are
 * removed; a value whose percent-decoded bytes are UTF-8 is decoded, any other is returned as it was sent.
 * @param header as Node gives it, a character a byte; several headers joined by `; `
 * @returns an object without prototype
 */
export function parseCookies(header: string | undefined): Record<string, string> {
  const cookies: Record<string, string> = Object.create(null) // `Object.create` returns any.
  if (header === undefined) return cookies
  for (let start = 0; start < header.length; ) {
    const semicolon = header.indexOf(';', start)
    const end = semicolon < 0 ? header.length : semicolon
    const equals = header.indexOf('=', start)
    if (equals < 0) break
    if (equals < end) {
      const name = trimmed(header, start, equals)
      if (name !== '' && cookies[name] === undefined) cookies[name] = valueBetween(header, equals + 1, end)
    }
    start = end + 1
  }
  return cookies
}

/**
 * One cookie of a Cookie header, as in `parseCookies`; undefined when there is none of that name. It makes no object,
 * since using a name that is cut out of a header as the name of a property takes V8 most of a microsecond.
 * @param name a token
 */
export function readCookie(header: string, name: string): string | undefined {
  for (let at = header.indexOf(name); at >= 0; at = header.indexOf(name, at + 1)) {
    let before = at - 1
    while (isSpace(header.charCodeAt(before))) before -= 1
    let equals = at + name.length
    while (isSpace(header.charCodeAt(equals))) equals += 1
    if (header[equals] !== '=' || (before >= 0 && header[before] !== ';')) continue
    const semicolon = header.indexOf(';', equals)
    return valueBetween(header, equals + 1, semicolon < 0 ? header.length : semicolon)
  }
  return undefined
}

/**
 * Writes the value of a Set-Cookie header.
 * @param name a token (RFC 9110 section 5.6.2)
 * @param value any text; characters that a cookie cannot hold are percent-encoded
 * @param attributes of this cookie; `undefined` counts as not given
 * @param defaults of the connection
 * @throws TypeError for a wrong name, value or attribute, and for attributes that the browser would refuse together;
 * RangeError for a number, date or length out of range
 */
export function serializeCookie(
  name: string,
  value: string,
  attributes: CookieAttributes,
  defaults: CookieDefaults,
): string {
  if (typeof name !== 'string' || !isToken(name)) {
    throw new TypeError(`Cannot set a cookie: its name must be a token (RFC 9110): it is ${JSON.stringify(name)}`)
  }
  const pair = `${name}=${encodeValue(name, value)}`
  if (pair.length - 1 > maxCookieBytes) {
    throw new RangeError(
      `Cannot set cookie ${name}: name and value must be at most ${maxCookieBytes} bytes: they are ${pair.length - 1}`,
    )
  }
  for (const key of Object.keys(attributes)) {
    if (!attributeNames.includes(key)) {
      throw wrong(name, `an attribute must be one of ${attributeNames.join(', ')}`, key)
    }
  }
  const { maxAge, expires, domain } = attributes
  const { path = '/', httpOnly = true, secure = defaults.secure, partitioned = false } = attributes
  const sameSite = readSameSite(name, attributes.sameSite)
  checkTogether(name, { path, domain, secure, sameSite })

  let text = pair
  if (maxAge !== undefined) text += `; Max-Age=${checkMaxAge(name, maxAge)}`
  if (expires !== undefined) text += `; Expires=${checkExpires(name, expires)}`
  if (domain !== undefined) text += `; Domain=${checkDomain(name, domain)}`
  text += `; Path=${checkPath(name, path)}`
  if (checkBoolean(name, 'httpOnly', httpOnly)) text += '; HttpOnly'
  if (checkBoolean(name, 'secure', secure)) text += '; Secure'
  text += `; SameSite=${sameSite}`
  if (!checkBoolean(name, 'partitioned', partitioned)) return text
  if (!secure) throw wrong(name, 'partitioned needs secure', secure)
  return `${text}; Partitioned`
}

/** Whether two values of Set-Cookie have the same name, domain and path (RFC 6265bis, section 5.7). */
export function isSameCookie(one: string, other: string): boolean {
  return identityOf(one) === identityOf(other)
}

function identityOf(cookie: string): string {
  const [, domain = ''] = /; Domain=([^;]*)/.exec(cookie) ?? []
  const [, path = ''] = /; Path=([^;]*)/.exec(cookie) ?? []
  return [cookie.slice(0, cookie.indexOf('=')), domain.toLowerCase(), path].join(';')
}

function valueBetween(header: string, from: number, to: number): string {
  return decodeValue(unquote(trimmed(header, from, to)))
}

/** A part of a text without spaces and tabs at its ends. */
function trimmed(text: string, from: number, to: number): string {
  let start = from
  let end = to
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}

function unquote(text: string): string {
  return text.length >= 2 && text.startsWith('"') && text.endsWith('"') ? text.slice(1, -1) : text
}

function decodeValue(text: string): string {
  if (!encoded.test(text) || brokenEncoding.test(text)) return text
  const bytes = text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
  const decoded = Buffer.from(bytes, 'latin1')
  return isUtf8(decoded) ? decoded.toString('utf8') : text
}

function encodeValue(name: string, value: string): string {
  if (typeof value !== 'string') throw wrong(name, 'its value must be a string', value)
  try {
    return value.replace(notAsItIs, encodeURIComponent)
  } catch (cause) {
    const message = `Cannot set cookie ${name}: its value must be well-formed Unicode: it has half a surrogate pair`
    throw new TypeError(message, { cause })
  }
}

/** The value of SameSite in its written form. */
function readSameSite(name: string, given: unknown = 'Lax'): SameSite {
  const known = typeof given === 'string' && sameSites.find((each) => each.toLowerCase() === given.toLowerCase())
  if (!known) throw wrong(name, 'sameSite must be Strict, Lax or None', given)
  return known
}

interface Together {
  readonly path: string
  readonly domain: string | undefined
  readonly secure: boolean
  readonly sameSite: SameSite
}

/** Refuses combinations for which browsers silently drop the cookie (RFC 6265bis sections 4.1.3 and 5.7). */
function checkTogether(name: string, { path, domain, secure, sameSite }: Together): void {
  if (sameSite === 'None' && !secure) throw wrong(name, 'sameSite None needs secure', secure)
  const prefix = /^__(?:secure|host)-/i.exec(name)?.[0].toLowerCase()
  if (prefix === undefined) return
  if (!secure) throw wrong(name, `the prefix ${name.slice(0, prefix.length)} needs secure`, secure)
  if (prefix !== '__host-') return
  if (domain !== undefined) throw wrong(name, 'the prefix __Host- allows no domain', domain)
  if (path !== '/') throw wrong(name, 'the prefix __Host- needs path /', path)
}

function checkMaxAge(name: string, maxAge: number): number {
  if (Number.isSafeInteger(maxAge)) return maxAge
  throw new RangeError(`Cannot set cookie ${name}: maxAge must be an integer of seconds: it is ${shown(maxAge)}`)
}

function checkExpires(name: string, expires: Date): string {
  if (!(expires instanceof Date)) throw wrong(name, 'expires must be a Date', expires)
  const time = expires.getTime()
  if (time >= firstExpiry && time <= lastExpiry) return expires.toUTCString()
  throw new RangeError(`Cannot set cookie ${name}: expires must be from 1601 to 9999: it is ${String(expires)}`)
}

function checkDomain(name: string, domain: string): string {
  if (typeof domain !== 'string' || !domainShape.test(domain)) throw wrong(name, 'domain must be a host name', domain)
  return checkLength(name, 'domain', domain)
}

function checkPath(name: string, path: string): string {
  if (typeof path !== 'string' || !/^\/[\x20-\x3a\x3c-\x7e]*$/.test(path)) {
    throw wrong(name, 'path must begin with / and be printable ASCII without semicolon', path)
  }
  return checkLength(name, 'path', path)
}

function checkLength(name: string, attribute: string, text: string): string {
  if (text.length <= maxCookieAttributeBytes) return text
  throw new RangeError(
    `Cannot set cookie ${name}: ${attribute} must be at most ${maxCookieAttributeBytes} bytes: it is ${text.length}`,
  )
}

function checkBoolean(name: string, attribute: string, value: boolean): boolean {
  if (typeof value === 'boolean') return value
  throw wrong(name, `${attribute} must be true or false`, value)
}

function wrong(name: string, allowed: string, value: unknown): TypeError {
  return new TypeError(`Cannot set cookie ${name}: ${allowed}: it is ${shown(value)}`)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
