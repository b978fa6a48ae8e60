/**
 * Edits a Content-Security-Policy (W3C CSP Level 3, section 2.2): a list of directives separated by `;`, each a name
 * and its values. If a directive is repeated, the first one counts.
 */

const scriptsAndStyles = ['script-src', 'style-src']
const elementDirectives = ['script-src-elem', 'style-src-elem']

/** Returns the policy that also allows scripts and styles with this nonce. */
export function withNonce(policy: string, nonce: string): string {
  const source = `'nonce-${nonce}'`
  const present = elementDirectives.filter((name) => valuesOf(policy, name) !== undefined)
  return [...scriptsAndStyles, ...present].reduce((changed, name) => withSource(changed, name, source), policy)
}

/**
 * Returns the policy that allows one more source.
 * @param name a fetch directive, such as `script-src`. Where the policy has none, it begins with the sources of
 *   `default-src`; where it has neither, everything is allowed already and the policy stays as it is
 */
export function withSource(policy: string, name: string, source: string): string {
  const values = sourcesOf(policy, name)
  if (values === undefined) return policy
  const sources = new Set([...values.filter((value) => value.toLowerCase() !== "'none'"), source])
  const directive = [name, ...sources].join(' ')
  const directives = policy.split(';').map((text) => text.trim()).filter((text) => text !== '')
  const at = directives.findIndex((text) => nameOf(text) === name)
  return (at < 0 ? [...directives, directive] : directives.with(at, directive)).join('; ')
}

/** The sources of a fetch directive, or of `default-src` in its place; undefined where the policy has neither. */
export function sourcesOf(policy: string, name: string): readonly string[] | undefined {
  return valuesOf(policy, name) ?? valuesOf(policy, 'default-src')
}

/** The values of a directive; undefined where the policy does not have it. */
export function valuesOf(policy: string, name: string): readonly string[] | undefined {
  const found = policy.split(';').map((text) => text.trim()).find((text) => nameOf(text) === name)
  return found?.split(/\s+/).slice(1)
}

function nameOf(directive: string): string {
  return (directive.split(/\s/, 1)[0] as string).toLowerCase() // A split has at least one part.
}
