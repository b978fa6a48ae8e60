/**
 * Parses header values with parameters, such as `text/html; charset=utf-8` and `form-data; name="a"` (RFC 9110 section
 * 5.6.6). In a quoted value only `\"` and `\\` are escapes: by the RFC `\U` means `U` too, but clients send unescaped
 * Windows paths.
 */
import { isToken } from '../base/token.ts'

/** A parsed header value. */
export interface ValueWithParameters {
  /** The text before the first `;`, in lower case. */
  readonly value: string
  /** Parameter names in lower case, values as sent without their quotes. */
  readonly parameters: ReadonlyMap<string, string>
}

/** One parameter; name and unquoted value are then checked to be tokens. */
const parameter = /;[ \t]*(?:([^\s=;"]+)=(?:([^\s;"]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?/y

/**
 * Parses a header value.
 * @param text one header value, as in Content-Type or Content-Disposition
 * @returns `undefined` if it is malformed or has a parameter twice, since parsers differ on which one counts
 */
export function parseParameters(text: string): ValueWithParameters | undefined {
  const semicolon = text.indexOf(';')
  let at = semicolon < 0 ? text.length : semicolon
  const value = text.slice(0, at).trim().toLowerCase()
  const parts = value.split('/')
  if (parts.length > 2 || !parts.every(isToken)) return undefined

  const parameters = new Map<string, string>()
  while (at < text.length) {
    parameter.lastIndex = at
    const match = parameter.exec(text)
    if (match === null) return undefined
    at = parameter.lastIndex
    const [, name, plain, quoted = ''] = match
    if (name === undefined) continue
    if (!isToken(name) || (plain !== undefined && !isToken(plain))) return undefined
    if (parameters.has(name.toLowerCase())) return undefined
    parameters.set(name.toLowerCase(), plain ?? quoted.replace(/\\(["\\])/g, '$1'))
  }
  return { value, parameters }
}
