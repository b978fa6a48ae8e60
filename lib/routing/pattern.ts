/**
 * URL patterns: segments between `/`, each a literal, `:name`, or, as the last, `*name` (the rest of the path).
 *
 * Literals are kept percent-decoded: `/caf%C3%A9` and `/café` are one pattern, and a colon in a literal is written
 * `%3A`. A parameter is always a whole segment: `/v:major` is refused, not read as a literal.
 */

import { asPropertyName } from '../base/property-name.ts'

/** One segment of a pattern. A literal's `text` is decoded; `encoded` is its form in a URL. */
export type Segment =
  | { readonly kind: 'literal'; readonly text: string; readonly encoded: string }
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'rest'; readonly name: string }

/** A parsed pattern. Immutable, may be shared. */
export interface Pattern {
  /** The pattern as written. */
  readonly text: string
  /** The segments from the left; none for `/`. */
  readonly segments: readonly Segment[]
  /** The names of parameters and rest, from the left. */
  readonly names: readonly string[]
}

/** An invalid pattern. The message has the text, the position (from 1) and what is allowed. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** The maximum number of segments. It bounds the depth of the tree, and so the recursion of a lookup. */
export const maxSegments = 100

const namePattern = /^[A-Za-z_][A-Za-z0-9_]*$/
const unprintable = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/
/** Characters that are never escaped (RFC 3986 section 2.3): most segments have only these. */
const unreserved = /^[A-Za-z0-9._~-]*$/
/** Literals that are equal in decoded and encoded form. */
const plainLiteral = /^[A-Za-z0-9_~-][A-Za-z0-9._~-]*$/
/** The maximum length of a value in a message. */
const longestQuote = 120
const escapeOfPathCharacter = /%(?:24|26|2B|2C|3A|3B|3D|40)/g

/**
 * Parses a pattern.
 * @param text begins with `/`; one trailing slash is ignored
 * @throws PatternError if it is invalid
 */
export function parsePattern(text: string): Pattern {
  refuseCharacters(text)
  if (!text.startsWith('/')) refuse(text, 0, 'a pattern begins with /')
  const segments: Segment[] = []
  const names: string[] = []
  let start = 1
  while (start < text.length) {
    const slash = text.indexOf('/', start)
    const end = slash < 0 ? text.length : slash
    if (end === start) refuse(text, start, 'a segment is empty: write one / between two segments')
    if (segments.length === maxSegments) refuse(text, start, `a pattern has at most ${maxSegments} segments`)
    const segment = parseSegment(text, start, end)
    if (segment.kind !== 'literal') {
      if (names.includes(segment.name)) refuse(text, start, `the name ${segment.name} is used twice`)
      names.push(segment.name)
    }
    if (segment.kind === 'rest' && end < text.length) {
      refuse(text, start, `*${segment.name} takes the rest of the path and must be the last segment`)
    }
    segments.push(segment)
    start = end + 1
  }
  // Copies: a list that grew takes more memory than necessary, and there may be many patterns.
  return { text, segments: segments.slice(), names: names.slice() }
}

/**
 * Builds a percent-encoded path from a pattern; the router parses it back into the same parameters.
 * @param params a value for each name; a rest may be empty, and its slashes stay slashes
 * @throws TypeError if a value is missing, empty, `.`, `..` or not well-formed, or if the pattern has no such name
 */
export function buildPath(pattern: Pattern, params: Readonly<Record<string, string | number>> = {}): string {
  const unknown = Object.keys(params).find((name) => !pattern.names.includes(name))
  if (unknown !== undefined) refuseValue(pattern, unknown, 'the pattern has no such parameter')
  let path = ''
  for (const segment of pattern.segments) {
    if (segment.kind === 'literal') {
      path += `/${segment.encoded}`
      continue
    }
    const value: unknown = Object.hasOwn(params, segment.name) ? params[segment.name] : undefined
    if (typeof value !== 'string' && typeof value !== 'number') refuseValue(pattern, segment.name, 'it is missing')
    const text = String(value)
    if (segment.kind === 'parameter') {
      if (text === '') refuseValue(pattern, segment.name, 'it is empty')
      path += `/${encodeValue(pattern, segment.name, text)}`
    } else {
      // Browsers treat a path that begins with two slashes as another host.
      if (path === '' && text.startsWith('/')) refuseValue(pattern, segment.name, 'it begins with an empty segment')
      path += `/${text.split('/').map((part) => encodeValue(pattern, segment.name, part)).join('/')}`
    }
  }
  return path === '' ? '/' : path
}

/**
 * Percent-encodes the characters that RFC 3986 section 3.3 does not allow in a path segment.
 * @throws URIError if it contains half a surrogate pair
 */
function encodeSegment(text: string): string {
  if (unreserved.test(text)) return text
  return encodeURIComponent(text).replace(escapeOfPathCharacter, decodeURIComponent)
}

/** Percent-decodes (RFC 3986 section 2.1, UTF-8). Returns undefined if an escape is malformed or not UTF-8. */
export function decodeText(text: string): string | undefined {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/**
 * Returns the canonical form of a path: all escapes are decoded except `/` and `%`, so that equivalent paths and
 * literals are equal strings.
 * @param path as sent, without query
 * @returns a segment with a malformed encoding is unchanged, and matches no literal
 */
export function canonicalPath(path: string): string {
  if (!path.includes('%')) return path
  return path.split('/').map(canonicalSegment).join('/')
}

/** Returns the canonical form of a decoded literal. */
export function canonicalLiteral(text: string): string {
  if (!text.includes('%') && !text.includes('/')) return text
  return text.replaceAll('%', '%25').replaceAll('/', '%2F')
}

function canonicalSegment(segment: string): string {
  const text = decodeText(segment)
  return text === undefined ? segment : canonicalLiteral(text)
}

function parseSegment(text: string, start: number, end: number): Segment {
  const first = text[start]
  const name = text.slice(start + 1, end)
  if (first === ':') return { kind: 'parameter', name: checkName(text, start, name, ':id') }
  if (first === '*') return { kind: 'rest', name: checkName(text, start, name, '*path') }
  return parseLiteral(text, start, text.slice(start, end))
}

function checkName(text: string, start: number, name: string, example: string): string {
  if (name === '') refuse(text, start, `a name is missing: write ${example}`)
  if (!namePattern.test(name)) {
    const allowed = 'a name is A-Z, a-z, 0-9 and _, up to the next /, and does not begin with a digit'
    refuse(text, start + 1, `${allowed}: it is ${quote(name)}`)
  }
  return asPropertyName(name)
}

function parseLiteral(text: string, start: number, raw: string): Segment {
  if (plainLiteral.test(raw)) return { kind: 'literal', text: raw, encoded: raw }
  const mark = raw.search(/[:*]/)
  if (mark >= 0) {
    const [character, escape] = raw[mark] === ':' ? [':', '%3A'] : ['*', '%2A']
    refuse(text, start + mark, `${character} only begins a segment: write ${escape} for the character`)
  }
  const literal = decodeText(raw)
  if (literal === undefined) {
    const allowed = 'write two hexadecimal digits per byte of UTF-8, %25 for %'
    refuse(text, start, `${quote(raw)} has a wrong percent-encoding: ${allowed}`)
  }
  if (literal === '.' || literal === '..') refuse(text, start, 'a segment must not be . or ..: clients remove them')
  if (unprintable.test(literal)) refuse(text, start, 'it encodes a control character')
  return { kind: 'literal', text: literal, encoded: encodeSegment(literal) }
}

function refuseCharacters(text: string): void {
  const at = text.search(/[?#\u0000-\u001f\u007f-\u009f\u2028\u2029]|\p{Surrogate}/u)
  if (at < 0) return
  if (text[at] === '?') refuse(text, at, 'a pattern has no query: read it with ctx.query; write %3F for the character')
  if (text[at] === '#') refuse(text, at, 'a pattern has no fragment: write %23 for the character')
  refuse(text, at, 'a control character or half a surrogate pair is not allowed')
}

function refuse(text: string, index: number, reason: string): never {
  throw new PatternError(`bad pattern ${quote(text)} at position ${index + 1}: ${reason}`)
}

function encodeValue(pattern: Pattern, name: string, value: string): string {
  if (value === '.' || value === '..') refuseValue(pattern, name, `clients remove the segment ${value} from a path`)
  try {
    return encodeSegment(value)
  } catch {
    return refuseValue(pattern, name, 'it contains half a surrogate pair')
  }
}

function refuseValue(pattern: Pattern, name: string, reason: string): never {
  throw new TypeError(`Cannot build the path of ${pattern.text}: parameter "${name}": ${reason}`)
}

/** Formats external input for a message: as JSON, without control characters, shortened to about 120 characters. */
export function quote(value: unknown): string {
  const text = typeof value === 'string' && value.length > longestQuote ? `${value.slice(0, longestQuote)}...` : value
  const json = String(JSON.stringify(text))
  return json.length > 2 * longestQuote ? `${json.slice(0, longestQuote)}...` : json
}
