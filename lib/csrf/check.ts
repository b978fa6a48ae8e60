/**
 * The check of both CSRF middlewares, in this order, and of `SVC_MwOrigin`, which ends with the second:
 * 1. Safe methods pass (RFC 9110, section 9.2.1): they change nothing.
 * 2. A request from another site is refused, whatever its token: anybody can fetch a signed token and send it from
 *    anywhere.
 * 3. The token is checked, from the header field or, without such a field, from the form body.
 *
 * So a body is read for its token only if no earlier rule has decided, and only if it is a form.
 */
import { isToken } from '../base/token.ts'
import { checkRedirect, settingsTable, type SettingsOf } from '../chain/settings.ts'
import type { CoreContext } from '../http/context.ts'
import { readFormField } from '../http/received-request.ts'
import { createOriginCheck } from '../http/origin.ts'

/** The settings of both middlewares: `setup.csrf`. */
export const csrfTable = settingsTable({
  redirect: {
    kind: 'string', default: '', check: (text) => (text === '' ? undefined : checkRedirect(text)),
    meaning: 'Where a refused request is redirected. Empty: it gets 403 with JSON.',
  },
  header: {
    kind: 'string', default: 'x-csrf-token', check: checkHeaderName,
    meaning: 'The request header that carries the token, in upper or lower case.',
  },
  field: {
    kind: 'string', default: '_csrf', check: (text) => (text === '' ? 'must not be empty' : undefined),
    meaning: 'The form field that carries the token, read if the header is not sent.',
  },
  lapse: {
    kind: 'integer', min: 0, max: 31_536_000, default: 0,
    meaning: 'Seconds for which a signed token is valid; 0: forever. 3600 limits its reuse.',
  },
})

/** The values of the settings. */
export type CsrfSettings = SettingsOf<typeof csrfTable>

/** Every reason to refuse, with its flash message. */
export const csrfReasons = {
  missing: 'This form came without its security token. Please open the page again and send it once more.',
  malformed: 'The security token of this form is damaged. Please open the page again and send it once more.',
  expired: 'This form was open for too long. Please open the page again and send it once more.',
  signature: 'The security token of this form is not valid. Please open the page again and send it once more.',
  mismatch: 'This form does not belong to your session. Please open the page again and send it once more.',
  cross_site: 'This form was sent from another site, so nothing was changed.',
} as const

/** The `reason` of a refusal and of its log line. */
export type CsrfReason = keyof typeof csrfReasons

/** The result of a check: a reason to refuse, or `ok`. */
export type CsrfOutcome = 'ok' | CsrfReason

/** Checks one token, signed or from a session. */
export type CheckToken = (token: string) => CsrfOutcome

/** The check. Returns a promise only if it reads a body; it rejects with the HttpError of `readForm`. */
export type CsrfCheck = (
  ctx: CoreContext,
  places: Pick<CsrfSettings, 'header' | 'field'>,
  checkToken: CheckToken,
) => CsrfOutcome | Promise<CsrfOutcome>

const safeMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/**
 * Makes the check.
 * @param trustedOrigins `server.trusted_origins`
 * @throws Error naming the invalid origin
 */
export function createCsrfCheck(trustedOrigins: readonly string[]): CsrfCheck {
  const verdictOn = createOriginCheck(trustedOrigins)
  return (ctx, places, checkToken) => {
    if (safeMethods.includes(ctx.method)) return 'ok'
    if (verdictOn(ctx) === 'cross') return 'cross_site'
    const inHeader = ctx.header(places.header.toLowerCase())
    if (inHeader !== undefined) return checkOne([inHeader], checkToken)
    const inForm = readFormField(ctx, places.field)
    return inForm === undefined ? 'missing' : inForm.then((values) => checkOne(values, checkToken))
  }
}

/**
 * Makes the check of `SVC_MwOrigin`, which has no token: whether a request may pass. Browsers since 2020 send one of
 * the origin fields with everything except GET, so a request without any comes from a program, and passes if it has
 * nothing that a browser adds automatically. `Origin: null` hides the origin, and is refused.
 * @param trustedOrigins as for `createCsrfCheck`
 */
export function createOriginRule(trustedOrigins: readonly string[]): (ctx: CoreContext) => boolean {
  const verdictOn = createOriginCheck(trustedOrigins)
  return (ctx) => {
    if (safeMethods.includes(ctx.method)) return true
    const verdict = verdictOn(ctx)
    if (verdict !== 'unknown') return verdict === 'same'
    return ['origin', 'cookie', 'authorization'].every((name) => ctx.header(name) === undefined)
  }
}

function checkOne(values: readonly string[], checkToken: CheckToken): CsrfOutcome {
  const [token] = values
  if (values.length > 1) return 'malformed'
  return token === undefined || token === '' ? 'missing' : checkToken(token)
}

function checkHeaderName(text: string): string | undefined {
  return isToken(text) ? undefined : 'must be the name of a header field (a token of RFC 9110)'
}
