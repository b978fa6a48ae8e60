/**
 * Reads and writes cookies (RFC 6265bis sections 4.1 and 4.2).
 *
 * `parseCookies` restores every text that `serializeCookie` has written: bytes that a cookie value cannot hold, and
 * `%`, are percent-encoded, others are sent unchanged.
 *
 * Of two cookies with the same name the first counts. Browsers send the cookie with the longer path first, which is
 * closer to the page.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { isToken } from '../base/token.ts'

type SameSite = (typeof sameSites)[number]

/** The attributes of a cookie. */
export interface CookieAttributes {
  /** Seconds, an integer; 0 or less deletes the cookie. Without it and `expires`, it ends with the browser session. */
  readonly maxAge?: number
  /** From 1601 to 9999. `maxAge` takes precedence. */
  readonly expires?: Date
  /** Begins with `/`. Default: `/`. */
  readonly path?: string
  /** A host, which includes its subdomains. Default: only this host. */
  readonly domain?: string
  /** Default: true. */
  readonly httpOnly?: boolean
  /** Default: true on TLS. */
  readonly secure?: boolean
  /** In upper or lower case; `None` needs `secure`. Default: `Lax`. */
  readonly sameSite?: SameSite | Lowercase<SameSite>
  /** Partitions the cookie by the embedding site (CHIPS); needs `secure`. Default: false. */
  readonly partitioned?: boolean
}

/** The maximum size of name and value together that browsers accept (RFC 6265bis section 5.6). */
const maxCookieBytes = 4096
const sameSites = ['Strict', 'Lax', 'None'] as const
const needsEncoding = /[^\x21\x23\x24\x26-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]+/g
const encoded = /[%\x80-\xff]/
const brokenEncoding = /%(?![0-9a-f]{2})/i
/** Browsers ignore a longer path or domain (RFC 6265bis section 5.6). */
const maxCookieAttributeBytes = 1024
const pathShape = /^\/[\x20-\x3a\x3c-\x7e]*$/
const domainShape = /^\.?[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/i
const firstExpiry = Date.UTC(1601, 0, 1)
const lastExpiry = Date.UTC(9999, 11, 31, 23, 59, 59)

type Rule = readonly [allows: (value: unknown) => boolean, must: string]

const isBoolean: Rule = [(value) => typeof value === 'boolean', 'must be true or false']

/** By attribute: the check of a value, and what it must be. */
const rules: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['maxAge', [Number.isSafeInteger, 'must be an integer of seconds']],
  ['expires', [isExpiry, 'must be a Date from 1601 to 9999']],
  ['path', shaped(pathShape, 'must begin with / and be printable ASCII without semicolon, at most 1024 characters')],
  ['domain', shaped(domainShape, 'must be a host name of at most 1024 bytes')],
  ['httpOnly', isBoolean],
  ['secure', isBoolean],
  ['sameSite', [(value) => canonicalSameSite(value) !== undefined, 'must be Strict, Lax or None']],
  ['partitioned', isBoolean],
])

/**
 * Parses a Cookie header. Never throws. Pieces without `=` or without a name are ignored; quotes around a value are
 * removed; a value whose percent-decoded bytes are UTF-8 is decoded, any other is returned as sent.
 * @param header as Node returns it, one character per byte; several headers joined by `; `
 * @returns an object without prototype
 */
export function parseCookies(header: string | undefined): Record<string, string> {
  const cookies = Object.create(null) as Record<string, string>
  if (header === undefined) return cookies
  let equals = -1
  for (let start = 0; start < header.length; ) {
    const semicolon = header.indexOf(';', start)
    const end = semicolon < 0 ? header.length : semicolon
    // Not searched again while it is ahead: pieces without `=` would take quadratic time.
    if (equals < start) equals = header.indexOf('=', start)
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
 * Returns one cookie of a Cookie header, as `parseCookies` does; undefined if there is none of that name. It creates no
 * object, since using a substring of a header as a property name takes V8 most of a microsecond.
 * @param name a token
 */
export function readCookie(header: string, name: string): string | undefined {
  const equals = findCookie(header, name, 0)
  return equals < 0 ? undefined : valueAt(header, equals)
}

/**
 * Returns all cookies of one name, in header order. Browsers send several if they differ in path or domain; only by the
 * value can a server recognize its own.
 * @param name a token
 */
export function readCookies(header: string, name: string): string[] {
  const values: string[] = []
  for (let equals = findCookie(header, name, 0); equals >= 0; equals = findCookie(header, name, equals)) {
    values.push(valueAt(header, equals))
  }
  return values
}

/** Finds a cookie from an offset. Returns the offset of its equals sign; -1 if not found. */
function findCookie(header: string, name: string, from: number): number {
  for (let at = header.indexOf(name, from); at >= 0; at = header.indexOf(name, at + 1)) {
    let before = at - 1
    while (isSpace(header.charCodeAt(before))) before -= 1
    let equals = at + name.length
    while (isSpace(header.charCodeAt(equals))) equals += 1
    if (header[equals] === '=' && (before < 0 || header[before] === ';')) return equals
  }
  return -1
}

function valueAt(header: string, equals: number): string {
  const semicolon = header.indexOf(';', equals)
  return valueBetween(header, equals + 1, semicolon < 0 ? header.length : semicolon)
}

/**
 * Returns the value of a Set-Cookie header.
 * @param name a token (RFC 9110 section 5.6.2)
 * @param value any text; characters that a cookie cannot hold are percent-encoded
 * @param attributes of this cookie; `undefined` means the default
 * @param defaults whether the request used TLS
 * @throws TypeError for an invalid name, value or attribute, and for a combination that browsers would refuse
 */
export function serializeCookie(
  name: string,
  value: string,
  attributes: CookieAttributes,
  defaults: { readonly secure: boolean },
): string {
  if (typeof name !== 'string' || !isToken(name)) {
    throw new TypeError(`Cannot set a cookie: its name must be a token (RFC 9110): it is ${JSON.stringify(name)}`)
  }
  if (typeof value !== 'string') throw wrong(name, 'its value must be a string', value)
  if (!value.isWellFormed()) throw wrong(name, 'its value must be well-formed Unicode', value)
  const pair = `${name}=${value.replace(needsEncoding, encodeURIComponent)}`
  if (pair.length - 1 > maxCookieBytes) {
    const problem = `name and value must be at most ${maxCookieBytes} bytes: they are ${pair.length - 1}`
    throw new TypeError(`Cannot set cookie ${name}: ${problem}`)
  }
  for (const [key, attribute] of Object.entries(attributes)) {
    const rule = rules.get(key)
    if (rule === undefined) throw wrong(name, `an attribute must be one of ${[...rules.keys()].join(', ')}`, key)
    const [allows, must] = rule
    if (attribute !== undefined && !allows(attribute)) throw wrong(name, `${key} ${must}`, attribute)
  }
  const { maxAge, expires, domain } = attributes
  const { path = '/', httpOnly = true, secure = defaults.secure, partitioned = false } = attributes
  const sameSite = canonicalSameSite(attributes.sameSite ?? 'Lax')
  if (sameSite === 'None' && !secure) throw wrong(name, 'sameSite None needs secure', secure)
  if (partitioned && !secure) throw wrong(name, 'partitioned needs secure', secure)
  checkPrefix(name, secure, domain, path)

  let text = pair
  if (maxAge !== undefined) text += `; Max-Age=${maxAge}`
  if (expires !== undefined) text += `; Expires=${expires.toUTCString()}`
  if (domain !== undefined) text += `; Domain=${domain}`
  text += `; Path=${path}`
  if (httpOnly) text += '; HttpOnly'
  if (secure) text += '; Secure'
  text += `; SameSite=${sameSite}`
  return partitioned ? `${text}; Partitioned` : text
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

/** Returns a part of a text without leading and trailing spaces and tabs. */
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

function isExpiry(value: unknown): boolean {
  return value instanceof Date && value.getTime() >= firstExpiry && value.getTime() <= lastExpiry
}

function shaped(shape: RegExp, must: string): Rule {
  return [(value) => typeof value === 'string' && value.length <= maxCookieAttributeBytes && shape.test(value), must]
}

/** Returns a SameSite value in canonical case; undefined for any other text. */
function canonicalSameSite(value: unknown): SameSite | undefined {
  return sameSites.find((each) => typeof value === 'string' && each.toLowerCase() === value.toLowerCase())
}

/** Refuses a prefixed cookie that browsers would silently drop (RFC 6265bis sections 4.1.3 and 5.7). */
function checkPrefix(name: string, secure: boolean, domain: string | undefined, path: string): void {
  const prefix = /^__(?:secure|host)-/i.exec(name)?.[0]
  if (prefix === undefined) return
  if (!secure) throw wrong(name, `the prefix ${prefix} needs secure`, secure)
  if (prefix.toLowerCase() !== '__host-') return
  if (domain !== undefined) throw wrong(name, 'the prefix __Host- allows no domain', domain)
  if (path !== '/') throw wrong(name, 'the prefix __Host- needs path /', path)
}

function wrong(name: string, allowed: string, value: unknown): TypeError {
  return new TypeError(`Cannot set cookie ${name}: ${allowed}: it is ${shown(value)}`)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}
