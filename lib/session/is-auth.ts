/**
 * `SVC_MwIsAuth`: passes requests whose session has a user, and refuses others.
 *
 * Pages behind it are `no-store` unless they set `Cache-Control` themselves: otherwise the back button would show them
 * after the sign-out.
 */
import { isObject } from '../base/object.ts'
import type { OpenLog } from '../base/ports.ts'
import type { CoreContext } from '../http/context.ts'
import { wantsJson } from '../http/error-reply.ts'
import { HttpError } from '../http/errors.ts'
import { checkRedirect, nextOf, prepareSettings, readSettings, settingsTable } from '../chain/settings.ts'
import type { BuiltInGroup, SettingsOf } from '../chain/settings.ts'
import type { Next } from '../chain/compose.ts'
import type { SessionMembers } from './feature.ts'
import { csrfTokenKey, flashKey } from './fields.ts'

const table = settingsTable({
  user_key: {
    kind: 'string', default: '_auth_user', check: checkUserKey,
    meaning: 'The session key of the user. Absent, null, false or empty: nobody is signed in.',
  },
  redirect: {
    kind: 'string', default: '/login', check: checkRedirect,
    meaning: 'Where a client that is not signed in is sent: a path or an http(s) URL. A JSON client gets 401 instead.',
  },
  next: {
    kind: 'boolean', default: true,
    meaning: 'Add the requested path with its query to `redirect`, if that is a path, as `next`: `ctx.returnTo()` '
      + 'reads it after the sign-in.',
  },
})

/** The longest path with its query that is added to a redirect, in characters. */
const longestNext = 2048

/** The group, and the signed-in user by its settings. */
interface AuthGroup extends BuiltInGroup {
  /** The current session key of the user. */
  userKey(): string
  /**
   * Returns the user of a request: `ctx.state.user`, else the user of the session, else the claim `sub` of
   * `ctx.state.jwt`; undefined if there is none.
   */
  userOf(ctx: CoreContext): unknown
}

/** Makes the group `auth` with its middleware `SVC_MwIsAuth`. */
export function createAuthGroup({ log }: { readonly log: OpenLog }): AuthGroup {
  const requestLog = log('worker_http')
  let settings: SettingsOf<typeof table> = readSettings('auth', table, undefined).settings

  const isAuth = (ctx: CoreContext & SessionMembers, next: Next): void | Promise<void> => {
    if (!ctx.session.isOpen) throw sessionMissing(ctx)
    if (ctx.outgoingIfAny?.get('Cache-Control') === undefined) ctx.setHeader('Cache-Control', 'no-store')
    const user = ctx.session.get(settings.user_key)
    if (isNobody(user)) {
      if (requestLog.debugEnabled) requestLog.debug(`${ctx.method} ${ctx.path}: SVC_MwIsAuth: nobody is signed in`)
      if (wantsJson(ctx)) throw unauthorized()
      return void ctx.redirect(targetFor(ctx))
    }
    ctx.state['user'] = user
    return next()
  }

  /** Only a page can be requested again after the sign-in. */
  function targetFor({ method, path, prefix, rawQuery, upgrading }: CoreContext): string {
    const { redirect, next } = settings
    const requested = path + rawQuery
    const isPage = (method === 'GET' || method === 'HEAD') && upgrading === undefined && requested.length <= longestNext
    if (!redirect.startsWith('/')) return redirect
    if (!next || !isPage) return prefix + redirect
    const [target = '', fragment] = (prefix + redirect).split('#', 2)
    const withNext = `${target}${target.includes('?') ? '&' : '?'}next=${nextOf(requested)}`
    return fragment === undefined ? withNext : `${withNext}#${fragment}`
  }

  return {
    name: 'auth',
    table,
    middleware: new Map([['SVC_MwIsAuth', isAuth]]),
    requires: new Map([['SVC_MwIsAuth', 'SVC_MwSession']]),
    prepare: (given) => prepareSettings('auth', table, given, (prepared) => (settings = prepared)),
    userKey: () => settings.user_key,
    userOf(ctx) {
      const { user, jwt } = ctx.state
      if (!isNobody(user)) return user
      const { session } = ctx as CoreContext & SessionMembers // Every context of a server has it.
      const own = session.isOpen ? session.get(settings.user_key) : undefined
      if (!isNobody(own)) return own
      const sub = isObject(jwt) ? jwt['sub'] : undefined
      return isNobody(sub) ? undefined : sub
    },
  }
}

/** Whether a value means that nobody is signed in. */
export function isNobody(user: unknown): boolean {
  return user === undefined || user === null || user === '' || user === false
}

function checkUserKey(text: string): string | undefined {
  if (text === '') return 'must be a key of the session, not empty'
  const isTaken = text === flashKey || text === csrfTokenKey
  return isTaken ? 'must be another key: sessions use this one internally' : undefined
}

function sessionMissing(ctx: CoreContext): HttpError {
  const message = `SVC_MwIsAuth on route "${ctx.routeName}" has no session: put SVC_MwSession before it`
  return new HttpError(500, 'auth_requires_session', message)
}

function unauthorized(): HttpError {
  return new HttpError(401, 'unauthorized', 'Nobody is signed in: sign in first, and send the session cookie', {
    headers: { 'WWW-Authenticate': 'Session' },
  })
}
