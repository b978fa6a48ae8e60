/**
 * Where a setting may send a client.
 */
const pathShape = /^\/(?![/\\])[^\u0000-\u0020\u007f]*$/
const urlShape = /^https?:\/\/[^\u0000-\u0020\u007f]+$/i

/**
 * Checks a place to redirect to: a path on this host, or an http or https URL.
 * @returns what it must be, to follow its name in a message; undefined when it is right
 */
export function checkRedirect(text: string): string | undefined {
  if (pathShape.test(text) || (urlShape.test(text) && URL.canParse(text))) return undefined
  return 'must be a path that begins with one slash, such as /login, or an http or https URL'
}
