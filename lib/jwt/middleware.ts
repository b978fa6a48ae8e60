/**
 * The middleware `SVC_MwJwt`: admits requests with a token of the issuer in `Authorization: Bearer` (RFC 6750, section
 * 2.1).
 *
 * Every refusal is JSON, even for browsers, since these are routes for programs. Its text never contains any part of
 * the token.
 */
import type { Middleware } from '../chain/compose.ts'
import { readSettings } from '../chain/settings.ts'
import type { CoreContext } from '../http/context.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { table, type JwtGroupOptions, type JwtVerifier } from './settings.ts'
import { createVerifier } from './verifier.ts'

/** The middleware as `setup.jwt` configures it. */
export interface PreparedJwt {
  readonly warnings: readonly string[]
  /** Undefined when the settings name no key. */
  readonly middleware: Middleware | undefined
}

/**
 * Reads `setup.jwt` and its key.
 * @throws SettingsError
 */
export function prepareJwt(value: unknown, options: JwtGroupOptions): PreparedJwt {
  const { settings, warnings } = readSettings('jwt', table, value)
  const created = createVerifier(settings, options)
  return {
    warnings: [...warnings, ...(created?.warnings ?? [])],
    middleware: created && createMiddleware(created.verifier, options.log('worker_http')),
  }
}

/** @param log receives the refusals, at DEBUG */
function createMiddleware(verify: JwtVerifier, log: ModuleLogger): Middleware {
  function refuse(ctx: CoreContext, error: string, detail: string, challenge: string): void {
    if (log.debugEnabled) log.debug(`${ctx.method} ${ctx.path}: SVC_MwJwt: ${detail}`)
    ctx.setHeader('WWW-Authenticate', challenge)
    ctx.json({ error, detail }, 401)
  }

  return (ctx, next) => {
    // With several fields, a proxy may have checked the last one, while `headers` has the first.
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

/** Returns the text after the scheme, which may be ''; undefined for another scheme. */
function bearerToken(field: string): string | undefined {
  return /^bearer(?: +|$)(.*)$/i.exec(field)?.[1]
}
