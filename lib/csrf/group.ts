/**
 * The group `csrf` of the built-in middleware. `SVC_MwCsrfCheck` checks signed tokens and needs no session;
 * `SVC_MwCsrf` checks the token in the session. `SVC_MwOrigin` needs no token, and has no settings.
 *
 * A refusal is a reply, not an error: programs and browsers get the same JSON.
 */
import type { LogPort, OpenLog } from '../base/ports.ts'
import { prepareSettings, readSettings, type BuiltInGroup } from '../chain/settings.ts'
import type { Middleware, Next } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { label } from '../http/label.ts'
import { createOriginCheck } from '../http/origin.ts'
import type { SessionMembers } from '../session/feature.ts'
import type { TokenOptions } from '../tokens/signature.ts'
import { createCsrfCheck, createOriginRule, csrfReasons, csrfTable } from './check.ts'
import type { CheckToken, CsrfCheck, CsrfOutcome, CsrfReason } from './check.ts'
import { csrfFeature, type CsrfFeatureParts } from './feature.ts'
import { createSessionTokens } from './session-token.ts'
import { createCsrfTokens } from './token.ts'

/** The options of the group. */
interface CsrfGroupOptions extends TokenOptions {
  /** `server.trusted_origins`. */
  readonly trustedOrigins: readonly string[]
  readonly log: OpenLog
}

/** The group and its feature. */
export interface CsrfGroup extends BuiltInGroup {
  readonly feature: Feature
  /** The current name of the form field that carries the token. */
  readonly field: () => string
  /** The current name of the header field that carries the token. */
  readonly header: () => string
}

/** The context with flash messages, for the reason of a refusal; `flash/` implements them. */
type CsrfContext = CoreContext &
  SessionMembers & { readonly flash: (id: string) => { set(key: string, value: unknown): void } }

interface Parts extends CsrfFeatureParts {
  readonly check: CsrfCheck
  /** The log of module `error`. */
  readonly log: LogPort
}

const name = 'csrf'
/** Whether a request comes from this site itself. */
const originOf = createOriginCheck([])

/**
 * Makes the group, with the default settings.
 * @throws RangeError if there is no key, or a key is empty; Error naming an invalid trusted origin
 */
export function createCsrfGroup({ keys, trustedOrigins, log, now }: CsrfGroupOptions): CsrfGroup {
  let current = readSettings(name, csrfTable, undefined).settings
  const parts: Parts = {
    check: createCsrfCheck(trustedOrigins),
    tokens: createCsrfTokens({ keys, now }),
    sessionTokens: createSessionTokens(keys[0] as string), // `createCsrfTokens` has refused an empty list.
    settings: () => current,
    statefulRequests: new WeakSet<CoreContext>(),
    log: log('error'),
  }
  return {
    name,
    table: csrfTable,
    middleware: new Map<string, Middleware>([
      ['SVC_MwCsrfCheck', createStatelessMiddleware(parts)],
      ['SVC_MwCsrf', createStatefulMiddleware(parts)],
      ['SVC_MwOrigin', createOriginMiddleware(trustedOrigins, parts.log)],
    ]),
    requires: new Map([['SVC_MwCsrf', 'SVC_MwSession']]),
    feature: csrfFeature(parts),
    field: () => current.field,
    header: () => current.header,
    prepare: (given) => prepareSettings(name, csrfTable, given, (settings) => (current = settings)),
  }
}

type CsrfMiddleware = (ctx: CsrfContext, next: Next) => void | Promise<void>

function createStatelessMiddleware(parts: Parts): CsrfMiddleware {
  const { tokens, settings } = parts
  const checkToken: CheckToken = (token) => tokens.check(token, settings().lapse)
  return (ctx, next) => guard(parts, ctx, next, checkToken)
}

/** Also creates the session's token on a GET. Without a session it replies 500. */
function createStatefulMiddleware(parts: Parts): CsrfMiddleware {
  const { sessionTokens, statefulRequests, log } = parts
  return (ctx, next) => {
    const { session } = ctx
    if (!session.isOpen) return refuseWithoutSession(log, ctx)
    statefulRequests.add(ctx)
    if (ctx.method === 'GET') sessionTokens.of(session)
    return guard(parts, ctx, next, (token) => sessionTokens.check(session, token))
  }
}

function createOriginMiddleware(trustedOrigins: readonly string[], log: LogPort): Middleware {
  const mayPass = createOriginRule(trustedOrigins)
  return (ctx, next) => (mayPass(ctx) ? next() : refuseWithJson(log, ctx, 'cross_site'))
}

function guard(parts: Parts, ctx: CsrfContext, next: Next, checkToken: CheckToken): void | Promise<void> {
  const proceed = (outcome: CsrfOutcome): void | Promise<void> =>
    outcome === 'ok' ? next() : refuse(parts, ctx, outcome)
  const outcome = parts.check(ctx, parts.settings(), checkToken)
  return outcome instanceof Promise ? outcome.then(proceed) : proceed(outcome)
}

function refuse({ log, settings }: Parts, ctx: CsrfContext, reason: CsrfReason): void {
  const { redirect } = settings()
  // A program would follow the redirect and treat the page as a success.
  if (redirect === '' || ctx.errorFormat === 'json') return refuseWithJson(log, ctx, reason)
  log.warn(refusalLine(ctx, reason), { request: ctx })
  // A cross-site request comes without the user's cookie, and the cookie of a new session would replace it.
  const maySetFlash = ctx.session.isOpen && (ctx.session.isFromClient || originOf(ctx) === 'same')
  if (maySetFlash) ctx.flash('csrf').set('error', csrfReasons[reason])
  ctx.redirect(redirect.startsWith('/') ? ctx.prefix + redirect : redirect)
}

function refuseWithJson(log: LogPort, ctx: CoreContext, reason: CsrfReason): void {
  log.warn(refusalLine(ctx, reason), { request: ctx })
  ctx.json({ error: 'csrf_invalid', reason }, 403)
}

function refusalLine(ctx: CoreContext, reason: CsrfReason): string {
  return `${label(ctx)} was refused by the CSRF check: ${reason}`
}

function refuseWithoutSession(log: LogPort, ctx: CoreContext): void {
  const advice = `add SVC_MwSession before it to the middleware of route "${ctx.routeName}"`
  log.error(`${ctx.method} ${ctx.path} was not served: SVC_MwCsrf has no session: ${advice}`, { request: ctx })
  ctx.json({ error: 'csrf_requires_session' }, 500)
}
