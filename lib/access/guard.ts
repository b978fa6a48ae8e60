/**
 * The guard before every system route. It checks in this order:
 * 1. In `dev`, bound to a loopback address and without `server.allowed_hosts`: the Host must be a local name. Another
 *    site can make its own name resolve to 127.0.0.1, so that its page has this origin (DNS rebinding).
 * 2. A request that changes something must not be a HEAD, a prefetch or from another site: a link or an image must not
 *    stop the server.
 * 3. The admin check: in `dev` everybody passes; in `prod` clients with a valid cookie pass and, for the metrics, with
 *    the token.
 * 4. A browser that sends a GET without its origin, possible over plain HTTP if another site disables the field, gets a
 *    page with a button before something changes.
 *
 * Programs other than browsers, such as curl, need not send an origin. `Origin: null` counts as another site, since
 * there is no token to decide.
 */
import type { Middleware } from '../chain/compose.ts'
import { nextOf } from '../chain/settings.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { isBoundToLoopback, isLoopbackHost } from '../http/host.ts'
import { createOriginCheck, isPrefetch, type OriginCheck } from '../http/origin.ts'
import { adminCookieName, hasAdminCookie } from './cookie.ts'
import { setupRequired } from './credentials.ts'
import { createMetricsToken } from './metrics-token.ts'
import { page, redirectTo } from './isolated-page.ts'
import type { AccessPort } from './access-port.ts'
import { createLoginThrottle, type LoginThrottle } from './throttle.ts'

/** When a request to a route changes something. A POST always does. */
export type Change = 'never' | 'always' | 'with-query'

/** The parts of a system route that the guard uses. */
interface GuardedRow {
  /** Whether the admin check applies. */
  readonly auth: boolean
  readonly change: Change
  readonly url: string
  /** The effect of a request, for the page with the button. */
  readonly meaning: string
}

/** The part of the server that the guard uses. */
type GuardPort = Pick<AccessPort, 'application' | 'audit' | 'config' | 'credentials' | 'pages'>

interface GuardOptions {
  /** Milliseconds since 1970; default: `Date.now`. */
  readonly now?: () => number
  /** Counts wrong tokens together with failed logins; default: a separate throttle. */
  readonly throttle?: LoginThrottle
}

/** Makes the guard: a function that creates the middleware of a row. */
export function createGuard(
  port: GuardPort,
  { now = Date.now, throttle = createLoginThrottle() }: GuardOptions = {},
): (row: GuardedRow) => Middleware {
  const { config } = port
  const checkToken = createMetricsToken(config['admin.metrics_token'], throttle, port.audit)
  const originCheck = createOriginCheck(config['server.trusted_origins'])
  const isOpen = config['app.env'] === 'dev'
  const { 'server.allowed_hosts': allowedHosts, 'server.host': boundTo } = config
  const loopbackHostsOnly = isOpen && allowedHosts.length === 0 && isBoundToLoopback(boundTo)

  return (row) => (ctx, next) => {
    ctx.setHeader('Cache-Control', 'no-store')
    if (loopbackHostsOnly && !isLoopbackHost(ctx.host)) throw nonLocalHost()
    const isChange = changesSomething(row, ctx)
    if (isChange) {
      if (ctx.method === 'HEAD') throw headRefused(ctx)
      const refusal = refusalOf(ctx, originCheck)
      if (refusal !== undefined) throw new HttpError(403, 'forbidden', refusal)
    }
    const byToken = row.url === '/svc-metrics' && !isOpen ? checkToken(ctx) : 'absent'
    if (byToken instanceof Promise) return byToken
    if (row.auth && !isOpen && byToken === 'absent') {
      if (setupRequired(port.credentials())) return void redirectTo(ctx, '/svc-setup')
      if (!hasAdminCookie(ctx, port, now())) return requireLogin(row, ctx)
    }
    const mayBeUser = isOpen || ctx.cookies[adminCookieName] !== undefined
    if (!isChange || !mayBeUser || !lacksOrigin(ctx)) return next()
    return confirmFirst(port, row, ctx, isOpen || hasAdminCookie(ctx, port, now()))
  }
}

function requireLogin(row: GuardedRow, ctx: CoreContext): void {
  if (row.url === '/svc-routes/add' && acceptsOnlyJson(ctx)) {
    ctx.json({ ok: false, error: 'Not logged in: send the cookie svc_admin of a login' }, 401)
  } else {
    redirectTo(ctx, `/svc-login?next=${nextOf(ctx.path)}`)
  }
}

/** Whether this is a browser's GET without an origin. Over HTTPS and on localhost, browsers always send one. */
function lacksOrigin(ctx: CoreContext): boolean {
  if (ctx.method !== 'GET' || !ctx.header('user-agent')?.startsWith('Mozilla/')) return false
  return ['sec-fetch-site', 'origin', 'referer'].every((name) => ctx.header(name) === undefined)
}

/** Replies with a page whose button sends the same request as a POST; 403 if the client does not accept HTML. */
function confirmFirst(port: GuardPort, row: GuardedRow, ctx: CoreContext, signedIn: boolean): void {
  if (!/\btext\/html\b/i.test(ctx.header('accept') ?? '')) {
    const problem = 'This request changes the server, and the browser does not say where it comes from: send a POST'
    throw new HttpError(403, 'forbidden', problem)
  }
  const data = { title: 'Please confirm', signedIn, target: ctx.path + ctx.rawQuery, meaning: row.meaning }
  page(ctx, port, 'confirm.html', data)
}

function nonLocalHost(): HttpError {
  const advice = 'open it as localhost or 127.0.0.1, or name the host in server.allowed_hosts'
  return new HttpError(400, 'bad_host', `In dev the admin panel accepts only local host names; ${advice}`)
}

function changesSomething(row: GuardedRow, ctx: CoreContext): boolean {
  if (ctx.method === 'POST' || row.change === 'always') return true
  return row.change === 'with-query' && ctx.rawQuery.length > 1
}

/** Every path where a GET changes something also allows POST; the registry refuses HEAD if there is only POST. */
function headRefused(ctx: CoreContext): HttpError {
  const allow = 'GET, OPTIONS, POST'
  return new HttpError(405, 'method_not_allowed', `${ctx.path} changes something, so it allows ${allow}, not HEAD`, {
    headers: { Allow: allow },
  })
}

/** Why a request that changes something is refused; undefined if it is allowed. */
function refusalOf(ctx: CoreContext, originCheck: OriginCheck): string | undefined {
  const verdict = originCheck(ctx)
  if (verdict === 'cross' || (verdict === 'unknown' && ctx.header('origin') === 'null')) {
    return 'This request changes the server and comes from another site'
  }
  return isPrefetch(ctx) ? 'This request changes the server and is a prefetch' : undefined
}

function acceptsOnlyJson(ctx: CoreContext): boolean {
  const types = ctx.header('accept')?.split(',') ?? []
  return types.length > 0 && types.every((type) => /^\s*application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type))
}
