/**
 * Content-Security-Policy (CSP Level 3), changed so far that the script of `dev` runs and its stream connects: a nonce
 * for the script, `'self'` for the stream. What a policy says of anything else stays as it was.
 *
 * Surprise: beside a nonce `'unsafe-inline'` has no effect. Where a page's own scripts need that, `'self'` lets this
 * one run.
 */

/** Each directive is its name with its source expressions. */
type Policy = string[][]

/** The directives that decide, the first one that is there (CSP Level 3, section 6.8). */
const forScripts = ['script-src-elem', 'script-src', 'default-src']
const forConnections = ['connect-src', 'default-src']

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
  const parsed = fields.map((field) => field.split(',').map(parse))
  const all = parsed.flat()
  let nonce = all.flatMap((policy) => deciding(policy, forScripts) ?? []).map(nonceOf).find((one) => one !== undefined)
  for (const policy of all) {
    const sources = deciding(policy, forScripts)
    if (sources !== undefined) {
      allow(policy, forScripts, allowsInline(sources) ? "'self'" : `'nonce-${(nonce ??= newNonce())}'`)
    }
    allow(policy, forConnections, "'self'")
  }
  return { fields: parsed.map((policies) => policies.map(textOf).join(', ')), nonce }
}

/** Adds a source to the directive that decides. Where that is `default-src`, a directive of its own takes over. */
function allow(policy: Policy, names: readonly string[], source: string): void {
  let directive = deciding(policy, names)
  if (directive === undefined) return
  if (directive[0]?.toLowerCase() === 'default-src') {
    directive = [names.at(-2) as string, ...directive.slice(1)] // Each list has a name before the last.
    policy.push(directive)
  }
  const none = directive.findIndex((each) => each.toLowerCase() === "'none'")
  if (none > 0) directive.splice(none, 1)
  if (!directive.includes(source)) directive.push(source)
}

/** Of two directives with one name the first counts. */
function deciding(policy: Policy, names: readonly string[]): string[] | undefined {
  for (const name of names) {
    const found = policy.find((directive) => directive[0]?.toLowerCase() === name)
    if (found !== undefined) return found
  }
  return undefined
}

function allowsInline(sources: readonly string[]): boolean {
  const overrides = /^'(?:nonce-|sha(?:256|384|512)-|strict-dynamic')/i
  return sources.some((one) => /^'unsafe-inline'$/i.test(one)) && !sources.some((one) => overrides.test(one))
}

function nonceOf(source: string): string | undefined {
  return /^'nonce-([\w+/=-]+)'$/i.exec(source)?.[1]
}

function parse(text: string): Policy {
  const directives = text.split(';').map((directive) => directive.trim())
  return directives.filter((directive) => directive !== '').map((directive) => directive.split(/\s+/))
}

function textOf(policy: Policy): string {
  return policy.map((directive) => directive.join(' ')).join('; ')
}
