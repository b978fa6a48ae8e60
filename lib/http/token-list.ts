/** Header fields that are lists of tokens, such as `Connection` and `Upgrade` (RFC 9110, section 5.6.1). */

/** Whether a field names a token, in any case of letters. `token` is in lower case. */
export function hasToken(field: string | undefined, token: string): boolean {
  return field !== undefined && field.split(',').some((entry) => entry.trim().toLowerCase() === token)
}
