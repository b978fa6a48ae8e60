/**
 * The token of HTTP (RFC 9110, section 5.6.2): names of methods, header fields, cookies and parameters.
 */

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

/** Whether a text is a token; the empty text is not. */
export function isToken(text: string): boolean {
  return token.test(text)
}

/**
 * Whether a header field that lists tokens, such as `Connection` (RFC 9110, section 5.6.1), contains a token.
 * @param wanted in lower case; the comparison ignores case
 */
export function hasToken(field: string | undefined, wanted: string): boolean {
  return field !== undefined && field.split(',').some((entry) => entry.trim().toLowerCase() === wanted)
}
