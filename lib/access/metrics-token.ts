/**
 * `admin.metrics_token`: lets a program that collects metrics read `/svc-metrics` with `Authorization: Bearer` (RFC
 * 6750, section 2.1) and without sign-in, even before the first setup.
 *
 * The correct token is accepted after any number of failures, and does not reset them: it is too long to be guessed,
 * and its holder must not be able to guess passwords faster. Wrong tokens count as failed sign-ins.
 */
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { equalTexts } from './password.ts'
import type { AccessPort } from './access-port.ts'
import type { LoginThrottle } from './throttle.ts'

/** `absent`: no bearer token was sent or configured. The promise of a wrong token rejects with HttpError 401. */
type TokenOutcome = 'right' | 'absent' | Promise<never>

/** Makes the check of a token; '': none is configured. */
export function createMetricsToken(
  token: string,
  throttle: LoginThrottle,
  audit: AccessPort['audit'],
): (ctx: CoreContext) => TokenOutcome {
  async function refuse(ctx: CoreContext): Promise<never> {
    audit(ctx, 'wrong metrics token', { failed: true })
    const seconds = (await throttle.begin(ctx.ip)) || (await throttle.failed(ctx.ip))
    throw new HttpError(401, 'unauthorized', 'The bearer token does not match admin.metrics_token', {
      headers: { 'WWW-Authenticate': 'Bearer', ...(seconds > 0 && { 'Retry-After': String(seconds) }) },
    })
  }

  return (ctx) => {
    const sent = token === '' ? undefined : /^bearer(?: +|$)(.*)$/i.exec(ctx.header('authorization') ?? '')?.[1]
    if (sent === undefined) return 'absent'
    return equalTexts(sent, token) ? 'right' : refuse(ctx)
  }
}

/** Returns what `admin.metrics_token` must be; undefined if it is valid. */
export function checkMetricsToken(text: string): string | undefined {
  if (text === '' || /^[\x21-\x7e]{32,}$/.test(text)) return undefined
  return 'must be empty, or at least 32 visible ASCII characters without spaces'
}
