/**
 * The token of HTTP (RFC 9110, section 5.6.2): names of methods, header fields, cookies, parameters.
 */

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether a text is a token, so of one character at least. */
export function isToken(text: string): boolean {
  return token.test(text)
}
