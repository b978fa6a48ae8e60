/**
 * What CSRF adds to the context: the hidden input of a form, and the session's token as text.
 *
 * Surprise: the input has the kind of token that the page's own route checks. A form for a route of the other kind
 * needs a page of that kind.
 */
import type { Context } from '../http/context.ts'
import { escapeHtml } from '../http/escape-html.ts'
import type { Feature } from '../http/features.ts'
import type { SessionTokens } from './session-token.ts'
import type { CsrfSettings } from './settings.ts'
import type { CsrfTokens } from './token.ts'

declare module '../http/context.ts' {
  interface Context {
    /**
     * A hidden input with a CSRF token: the session's where `SVC_MwCsrf` ran on this request, else a freshly signed
     * one, the same for every form of the page.
     */
    readonly csrfInput: () => string
    /** The specification's name for `csrfInput`. */
    readonly UCsrfToHtml: () => string
    /** The session's CSRF token where `SVC_MwCsrf` ran on this request, else ''. */
    readonly csrf_token: string
  }
}

/** What the feature is made of. */
export interface CsrfFeatureParts {
  readonly tokens: CsrfTokens
  readonly sessionTokens: SessionTokens
  /** The settings now: a reload may change them. */
  readonly settings: () => CsrfSettings
  /** The requests on which `SVC_MwCsrf` ran. */
  readonly statefulRequests: WeakSet<Context>
}

/** Makes the feature. */
export function csrfFeature({ tokens, sessionTokens, settings, statefulRequests }: CsrfFeatureParts): Feature {
  const showOfSession = (ctx: Context): string => showSessionToken(ctx, sessionTokens)
  const makeInput = (ctx: Context) => {
    let signed: string | undefined
    return (): string => {
      const token = statefulRequests.has(ctx) ? showOfSession(ctx) : (signed ??= showSignedToken(ctx, tokens))
      return `<input type="hidden" name="${escapeHtml(settings().field)}" value="${token}">`
    }
  }
  const makeText = (ctx: Context): string => (statefulRequests.has(ctx) ? showOfSession(ctx) : '')
  return {
    name: 'csrf',
    members: [
      { name: 'csrfInput', aliases: ['UCsrfToHtml'], inViews: 'aliases', make: makeInput },
      { name: 'csrf_token', inViews: 'name', make: makeText },
    ],
  }
}

/** The session's token is the same in every page: compressed, its length could betray it (BREACH). */
function showSessionToken(ctx: Context, sessionTokens: SessionTokens): string {
  ctx.neverCompressed = true
  keepPrivate(ctx)
  return sessionTokens.of(ctx.session)
}

function showSignedToken(ctx: Context, tokens: CsrfTokens): string {
  keepPrivate(ctx)
  return tokens.make()
}

/** A page with a token must not come out of a shared cache (RFC 9111 section 5.2.2.7). */
function keepPrivate(ctx: Context): void {
  if (ctx.outgoing.get('Cache-Control') === undefined) ctx.setHeader('Cache-Control', 'private')
}
