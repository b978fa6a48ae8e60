/**
 * Content-Security-Policy (CSP Level 3), with what the script of `dev` needs to run and to open its stream: a nonce for
 * the script, `'self'` for the stream. The rest of a policy stays as it was.
 *
 * Surprise: beside a nonce `'unsafe-inline'` has no effect. Where a page's own scripts need that, `'self'` lets this
 * one run.
 */
import { sourcesOf, valuesOf, withSource } from '../protection/csp.ts'

/** The policies of an answer, and the nonce that the script needs; undefined where it needs none. */
interface AllowedPolicy {
  readonly fields: readonly string[]
  readonly nonce: string | undefined
}

/**
 * Lets the script run under every one of the policies.
 * @param fields the values of the header fields; each may hold several policies
 * @param newNonce makes a nonce where no policy has one
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

/** The directive that decides on `<script>` (CSP Level 3, section 6.8), or takes over from `default-src`. */
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
