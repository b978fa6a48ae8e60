/**
 * `SVC_MwJwt` and its settings `setup.jwt`: admits requests with a token of the issuer in `Authorization: Bearer` (RFC
 * 6750, section 2.1). The code that reads tokens and keys is loaded when the configuration has this group.
 *
 * Every refusal is JSON, for browsers too, since these are routes for programs. Its text never has any part of the
 * token.
 */
import type { Middleware } from '../chain/compose.ts'
import { readSettings, type BuiltInGroup } from '../chain/settings.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { table, type JwtGroupOptions, type JwtVerifier } from './settings.ts'

/** Makes the group `jwt` with its middleware `SVC_MwJwt`. */
export function createJwtGroup(options: JwtGroupOptions): BuiltInGroup {
  let current: JwtVerifier | undefined
  let code: typeof import('./verifier.ts') | undefined
  return {
    name: 'jwt',
    table,
    middleware: new Map([['SVC_MwJwt', createJwtMiddleware(() => current, options.log('worker_http'))]]),
    async load() {
      code = await import('./verifier.ts')
    },
    prepare(given) {
      const { settings, warnings } = readSettings('jwt', table, given)
      if (given !== undefined && code === undefined) throw new Error('The code that reads tokens is not loaded')
      const made = code?.makeVerifier(settings, options)
      return {
        warnings: [...warnings, ...(made?.warnings ?? [])],
        unready: made === undefined ? 'setup.jwt has no key and no key_file' : undefined,
        commit() {
          current = made?.verifier
        },
      }
    },
  }
}

/**
 * Makes the middleware. It throws HttpError 500 `jwt_requires_key` while there is no verifier.
 * @param verifier the current one; undefined when there is no key
 * @param log gets the refusals, at DEBUG
 */
function createJwtMiddleware(verifier: () => JwtVerifier | undefined, log: ModuleLogger): Middleware {
  function refuse(ctx: CoreContext, error: string, detail: string, challenge: string): void {
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
