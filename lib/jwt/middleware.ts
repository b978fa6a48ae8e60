/**
 * `SVC_MwJwt`: admits requests with a token of the issuer in `Authorization: Bearer` (RFC 6750, section 2.1).
 *
 * Every refusal is JSON, for browsers too, since these are routes for programs. Its text never has any part of the
 * token.
 */
import type { CoreContext as Context } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Middleware } from '../chain/compose.ts'

/** Reads a token: its claims, or why it is refused, in ASCII without quotes. Never throws. */
export type JwtVerifier = (
  token: string,
) => { readonly claims: Readonly<Record<string, unknown>> } | { readonly problem: string }

/**
 * Makes the middleware. It throws HttpError 500 `jwt_requires_key` while there is no verifier.
 * @param verifier the current one; undefined when there is no key
 * @param log gets the refusals, at DEBUG
 */
export function createJwtMiddleware(verifier: () => JwtVerifier | undefined, log: ModuleLogger): Middleware {
  function refuse(ctx: Context, error: string, detail: string, challenge: string): void {
    if (log.debugEnabled) log.debug(`${ctx.method} ${ctx.path}: SVC_MwJwt: ${detail}`)
    ctx.setHeader('WWW-Authenticate', challenge)
    ctx.json({ error, detail }, 401)
  }

  return (ctx, next) => {
    const verify = verifier()
    if (verify === undefined) {
      const message = `SVC_MwJwt on route "${ctx.routeName}" has no key: set key or key_file in setup.jwt`
      throw new HttpError(500, 'jwt_requires_key', `${message} of the middleware configuration`)
    }
    // Of several fields a proxy may have checked the last, while `headers` has the first.
    const [field = '', ...others] = ctx.request.headersDistinct['authorization'] ?? []
    const token = others.length === 0 ? bearerToken(field) : undefined
    if (others.length === 0 && token === undefined) {
      return refuse(ctx, 'unauthorized', 'Send a token: Authorization: Bearer <token>', 'Bearer')
    }
    const reading = token === undefined ? { problem: 'there is more than one Authorization field' } : verify(token)
    if ('problem' in reading) {
      const challenge = `Bearer error="invalid_token", error_description="${reading.problem}"`
      return refuse(ctx, 'invalid_token', reading.problem, challenge)
    }
    ctx.state['jwt'] = reading.claims
    return next()
  }
}

/** The text after the scheme, which may be ''; undefined for another scheme. */
function bearerToken(field: string): string | undefined {
  return /^bearer(?: +|$)(.*)$/i.exec(field)?.[1]
}
