/**
 * The context members of CSRF: the hidden input of a form, and the session's token as text.
 *
 * The input has the kind of token that the page's own route checks: the session's if `SVC_MwCsrf` ran on this request,
 * else a newly signed one, the same for every form of the page. A form that posts to a route with the other kind must
 * be on a page with that kind. `csrf_token` is the session's token if `SVC_MwCsrf` ran, else ''.
 */
import type { CoreContext } from '../http/context.ts'
import { escapeHtml } from '../http/escape-html.ts'
import type { Feature } from '../http/features.ts'
import { keepPrivate } from '../session/cookie.ts'
import type { SessionMembers } from '../session/feature.ts'
import type { CsrfSettings } from './check.ts'
import type { SessionTokens } from './session-token.ts'
import type { CsrfTokens } from './token.ts'

/** The parts of the feature. */
export interface CsrfFeatureParts {
  readonly tokens: CsrfTokens
  readonly sessionTokens: SessionTokens
  /** The current settings, which a reload may change. */
  readonly settings: () => CsrfSettings
  /** The requests on which `SVC_MwCsrf` has run. */
  readonly statefulRequests: WeakSet<CoreContext>
}

/** Makes the feature. */
export function csrfFeature({ tokens, sessionTokens, settings, statefulRequests }: CsrfFeatureParts): Feature {
  /** The session's token is the same on every page, so the length of a compressed page could reveal it (BREACH). */
  const sessionToken = (ctx: CoreContext & SessionMembers): string => {
    ctx.neverCompressed = true
    keepPrivate(ctx)
    return sessionTokens.of(ctx.session)
  }
  const newlySigned = (ctx: CoreContext): string => {
    keepPrivate(ctx)
    return tokens.make()
  }
  const makeInput = (ctx: CoreContext & SessionMembers) => {
    let signed: string | undefined
    return (): string => {
      const token = statefulRequests.has(ctx) ? sessionToken(ctx) : (signed ??= newlySigned(ctx))
      return `<input type="hidden" name="${escapeHtml(settings().field)}" value="${token}">`
    }
  }
  const makeText = (ctx: CoreContext & SessionMembers): string => (statefulRequests.has(ctx) ? sessionToken(ctx) : '')
  return {
    name: 'csrf',
    members: [
      { name: 'csrfInput', aliases: ['UCsrfToHtml'], inViews: 'aliases', make: makeInput },
      { name: 'csrf_token', inViews: 'name', make: makeText },
    ],
  }
}
