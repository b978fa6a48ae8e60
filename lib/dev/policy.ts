/**
 * Extends Content-Security-Policy (CSP Level 3) so that the script of `dev` may run and open its stream: a nonce for
 * the script, `'self'` for the stream. The rest of a policy is unchanged.
 *
 * Surprise: a nonce disables `'unsafe-inline'`. Where the page's scripts need that, `'self'` allows this one instead.
 */
import { sourcesOf, valuesOf, withSource } from '../protection/csp.ts'

/** The policies of a response, and the nonce that the script needs, if any. */
interface AllowedPolicy {
  readonly fields: readonly string[]
  readonly nonce: string | undefined
}

/**
 * Lets the script run under every one of the policies.
 * @param fields the values of the header fields; each may hold several policies
 * @param newNonce creates a nonce if no policy has one
 */
export function allowScript(fields: readonly string[], newNonce: () => string): AllowedPolicy {
  const parsed = fields.map((field) => field.split(',').map((policy) => policy.trim()))
  const sources = parsed.flat().flatMap((policy) => sourcesOf(policy, directiveOf(policy)) ?? [])
  let nonce = sources.map(nonceOf).find((one) => one !== undefined)
  const allow = (policy: string): string => {
    const name = directiveOf(policy)
    const allowed = sourcesOf(policy, name)
    if (allowed === undefined) return policy
    return withSource(policy, name, allowsInline(allowed) ? "'self'" : `'nonce-${(nonce ??= newNonce())}'`)
  }
  const changed = parsed.map((policies) => policies.map((policy) => withSource(allow(policy), 'connect-src', "'self'")))
  return { fields: changed.map((policies) => policies.join(', ')), nonce }
}

/** Returns the directive that governs `<script>` (CSP Level 3, section 6.8), or overrides `default-src`. */
function directiveOf(policy: string): string {
  return valuesOf(policy, 'script-src-elem') === undefined ? 'script-src' : 'script-src-elem'
}

function allowsInline(sources: readonly string[]): boolean {
  const overrides = /^'(?:nonce-|sha(?:256|384|512)-|strict-dynamic')/i
  return sources.some((one) => /^'unsafe-inline'$/i.test(one)) && !sources.some((one) => overrides.test(one))
}

function nonceOf(source: string): string | undefined {
  return /^'nonce-([\w+/=-]+)'$/i.exec(source)?.[1]
}
