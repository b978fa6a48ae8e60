/**
 * Header values with parameters, such as `text/html; charset=utf-8` and `form-data; name="a"` (RFC 9110 section 5.6.6).
 *
 * Surprise: in a quoted value only `\"` and `\\` are escapes. The RFC takes `\U` for `U`, but what is sent is a Windows
 * path that nobody escaped.
 */
import { isToken } from '../base/token.ts'

/** A header value taken apart. */
export interface ValueWithParameters {
  /** What stands before the first `;`, in lower case. */
  readonly value: string
  /** Parameter names in lower case, values as sent without their quotes. */
  readonly parameters: ReadonlyMap<string, string>
}

/** One parameter; whether its name and a value without quotes are tokens is looked at afterwards. */
const parameter = /;[ \t]*(?:([^\s=;"]+)=(?:([^\s;"]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?/y

let lastText = ''
let last: ValueWithParameters | undefined

/**
 * Takes a header value apart. Nearly all requests of a form have the same one, so the last is remembered.
 *
 * @param text one header value, as in Content-Type or Content-Disposition
 * @returns `undefined` when it is malformed or names a parameter twice: two readers might take different ones
 */
export function parseParameters(text: string): ValueWithParameters | undefined {
  if (text !== lastText) {
    last = parse(text)
    lastText = text
  }
  return last
}

function parse(text: string): ValueWithParameters | undefined {
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
