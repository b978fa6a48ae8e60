/**
 * The two CSRF middlewares. `SVC_MwCsrfCheck` takes signed tokens and needs no session; `SVC_MwCsrf` takes the token
 * that lies in the session.
 *
 * Surprise: a refusal is a reply, not an error: it is the same JSON for a program and for a browser.
 */
import type { Context } from '../http/context.ts'
import { label } from '../http/label.ts'
import { withRequestId } from '../log/line.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Middleware, Next } from '../chain/compose.ts'
import type { CheckToken, CsrfCheck, CsrfOutcome } from './check.ts'
import { csrfReasons, type CsrfReason } from './reason.ts'
import type { SessionTokens } from './session-token.ts'
import type { CsrfSettings } from './settings.ts'
import type { CsrfTokens } from './token.ts'

/** What both middlewares are made of. */
export interface CsrfMiddlewareParts {
  readonly check: CsrfCheck
  readonly tokens: CsrfTokens
  readonly sessionTokens: SessionTokens
  /** The settings now: a reload may change them. */
  readonly settings: () => CsrfSettings
  /** The requests on which `SVC_MwCsrf` ran: it adds them. */
  readonly statefulRequests: WeakSet<Context>
  /** The log of module `error`. */
  readonly log: ModuleLogger
}

/** Makes `SVC_MwCsrfCheck`: stateless. */
export function createStatelessMiddleware(parts: CsrfMiddlewareParts): Middleware {
  const { tokens, settings } = parts
  const checkToken: CheckToken = (token) => tokens.check(token, settings().lapse)
  return (ctx, next) => guard(parts, ctx, next, checkToken)
}

/** Makes `SVC_MwCsrf`: stateful. On a GET it gives the session its token; without a session it answers 500. */
export function createStatefulMiddleware(parts: CsrfMiddlewareParts): Middleware {
  const { sessionTokens, statefulRequests, log } = parts
  return (ctx, next) => {
    const { session } = ctx
    if (!session.isOpen) return refuseWithoutSession(log, ctx)
    statefulRequests.add(ctx)
    if (ctx.method === 'GET') sessionTokens.of(session)
    return guard(parts, ctx, next, (token) => sessionTokens.check(session, token))
  }
}

function guard(parts: CsrfMiddlewareParts, ctx: Context, next: Next, checkToken: CheckToken): void | Promise<void> {
  const proceed = (outcome: CsrfOutcome): void | Promise<void> =>
    outcome === 'ok' ? next() : refuse(parts, ctx, outcome)
  const outcome = parts.check(ctx, parts.settings(), checkToken)
  return outcome instanceof Promise ? outcome.then(proceed) : proceed(outcome)
}

function refuse({ log, settings }: CsrfMiddlewareParts, ctx: Context, reason: CsrfReason): void {
  const { redirect } = settings()
  log.warn(withRequestId(`${label(ctx)} was refused by the CSRF check: ${reason}`, ctx))
  if (redirect === '') return void ctx.json({ error: 'csrf_invalid', reason }, 403)
  // A browser may keep the cookie from another site's request: a new session would take the place of the user's own.
  const mayBeElsewhere = reason === 'cross_site' || ctx.header('origin') === 'null'
  if (ctx.session.isOpen && (ctx.session.came || !mayBeElsewhere)) ctx.flash('csrf').set('error', csrfReasons[reason])
  ctx.redirect(redirect)
}

function refuseWithoutSession(log: ModuleLogger, ctx: Context): void {
  const advice = `add SVC_MwSession before it to the middleware of route "${ctx.routeName}"`
  log.error(withRequestId(`${ctx.method} ${ctx.path} was not served: SVC_MwCsrf has no session: ${advice}`, ctx))
  ctx.json({ error: 'csrf_requires_session' }, 500)
}
