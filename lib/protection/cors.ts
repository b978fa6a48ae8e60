/**
 * `SVC_MwCors` and its settings: lets pages of other origins read the responses of a route (Fetch standard, section
 * 3.2). It does not relax the CSRF check: an origin that may send changes must be in `server.trusted_origins` too.
 *
 * Preflights are answered before any other middleware runs, since they come without cookies and tokens.
 */
import type { Chain, Next } from '../chain/compose.ts'
import { readSettings, SettingsError, settingsTable } from '../chain/settings.ts'
import type { BuiltInGroup, SettingsOf } from '../chain/settings.ts'
import { isToken } from '../base/token.ts'
import type { CoreContext } from '../http/context.ts'
import { checkTrustedOrigin, originKey } from '../http/origin.ts'
import { emptyReply, type BodyReply } from '../http/reply.ts'
import type { Registry } from '../routing/registry.ts'

/** The group, and the reply to preflights. */
export interface CorsGroup extends BuiltInGroup {
  /** The reply to a preflight, with its fields set; undefined for any other request. */
  preflight(ctx: CoreContext, registry: Pick<Registry<Chain>, 'find'>): BodyReply | undefined
}

/** The name by which a route uses the middleware. */
const middlewareName = 'SVC_MwCors'

const table = settingsTable({
  origins: {
    kind: 'list', default: [], check: (text) => (text === '*' ? undefined : checkTrustedOrigin(text)),
    meaning: 'The origins whose pages may read the responses, such as `https://app.example.org` or '
      + '`capacitor://localhost`; `*`: all origins.',
  },
  methods: {
    kind: 'list', default: ['GET', 'HEAD', 'POST'], commas: true, check: checkName,
    meaning: 'The methods that they may use.',
  },
  headers: {
    kind: 'list', default: [], commas: true, check: checkName,
    meaning: 'The header fields that they may send, besides those that any page may: `content-type` for JSON, '
      + '`authorization` for a token.',
  },
  expose: {
    kind: 'list', default: [], commas: true, check: checkName,
    meaning: 'The response header fields that they may read, besides those that any page may.',
  },
  credentials: {
    kind: 'boolean', default: false,
    meaning: 'Whether the browser sends cookies. Not allowed with the origin `*`. An origin that may send changes must '
      + 'be in `server.trusted_origins` too.',
  },
  max_age_s: {
    kind: 'integer', min: 0, max: 86_400, default: 600,
    meaning: 'Seconds for which a browser caches the preflight response.',
  },
})

/**
 * Makes the group `cors` with its middleware `SVC_MwCors`.
 * @param trustedOrigins `server.trusted_origins`
 */
export function createCorsGroup(trustedOrigins: readonly string[]): CorsGroup {
  let rules = rulesOf(readSettings('cors', table, undefined).settings)
  const trusted = new Set(trustedOrigins.map(originKey))

  /** The value of `Access-Control-Allow-Origin`; undefined for an origin that is not allowed, and for `null`. */
  function allowed(ctx: CoreContext): string | undefined {
    const sent = ctx.header('origin')
    const key = sent === undefined ? undefined : originKey(sent)
    if (key === undefined) return undefined
    if (rules.any) return '*'
    return rules.origins.has(key) ? sent : undefined
  }

  function setFields(ctx: CoreContext, origin: string, fields: readonly string[]): void {
    ctx.outgoing.set('Access-Control-Allow-Origin', origin)
    if (rules.credentials) ctx.outgoing.set('Access-Control-Allow-Credentials', 'true')
    for (let at = 0; at < fields.length; at += 2) ctx.outgoing.set(fields[at] as string, fields[at + 1] as string)
  }

  async function run(ctx: CoreContext, next: Next): Promise<void> {
    const origin = allowed(ctx)
    if (origin !== undefined) setFields(ctx, origin, rules.responseFields)
    try {
      await next()
    } finally {
      varyByOrigin(ctx) // Afterwards, since the action may set Vary too.
    }
  }

  return {
    name: 'cors',
    table,
    middleware: new Map([[middlewareName, run]]),
    prepare(given) {
      const { settings, warnings } = readSettings('cors', table, given)
      if (settings.credentials && settings.origins.includes('*')) {
        throw new SettingsError(['setup.cors.credentials must be false with the origin *: name the origins instead'])
      }
      const untrusted = settings.credentials ? settings.origins.filter((each) => !trusted.has(originKey(each))) : []
      const originWarnings = untrusted.map((origin) => {
        const problem = `setup.cors.origins has ${origin}, with credentials, but server.trusted_origins does not`
        return `${problem}: its pages can read responses, but the CSRF check refuses every change that they send`
      })
      return {
        warnings: [...warnings, ...originWarnings],
        commit() {
          rules = rulesOf(settings)
        },
      }
    },
    preflight(ctx, registry) {
      const method = ctx.header('access-control-request-method')
      if (method === undefined || ctx.header('origin') === undefined) return undefined
      const match = registry.find(method, ctx.path)
      if (match?.route.record.middleware.split(',').includes(middlewareName) !== true) return undefined
      ctx.matched(match)
      ctx.status = 204
      varyByOrigin(ctx)
      const origin = allowed(ctx)
      const names = (ctx.header('access-control-request-headers') ?? '').split(',').map((name) => name.trim())
      const isAllowed =
        rules.methods.has(method) && names.every((name) => name === '' || rules.headers.has(name.toLowerCase()))
      if (origin !== undefined && isAllowed) setFields(ctx, origin, rules.preflightFields)
      return emptyReply
    },
  }
}

/** The settings in the form that requests are checked with: field names in lower case; fields as alternating pairs. */
function rulesOf(settings: SettingsOf<typeof table>) {
  const { origins, headers, expose, credentials } = settings
  const methods = settings.methods.map((method) => method.toUpperCase())
  return {
    any: origins.includes('*'),
    origins: new Set(origins.map(originKey).filter((key) => key !== undefined)),
    methods: new Set(methods),
    headers: new Set(headers.map((name) => name.toLowerCase())),
    credentials,
    responseFields: expose.length === 0 ? [] : ['Access-Control-Expose-Headers', expose.join(', ')],
    preflightFields: [
      ...['Access-Control-Allow-Methods', methods.join(', ')],
      ...(headers.length === 0 ? [] : ['Access-Control-Allow-Headers', headers.join(', ')]),
      ...['Access-Control-Max-Age', String(settings.max_age_s)],
    ],
  }
}

/** Makes caches keep one response per origin. */
function varyByOrigin({ outgoing }: CoreContext): void {
  const vary = outgoing.get('Vary')
  if (vary === undefined) outgoing.set('Vary', 'Origin')
  else if (!/(?:^|[\s,])(?:origin|\*)(?:$|[\s,])/i.test(vary)) outgoing.set('Vary', `${vary}, Origin`)
}

/** A method or a field name: a token. `*` would mean all of them, so no list accepts it. */
function checkName(text: string): string | undefined {
  return isToken(text) && text !== '*' ? undefined : 'must be a name without spaces, but not "*"'
}
