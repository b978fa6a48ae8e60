/**
 * The check of both CSRF middlewares, in this order:
 * 1. Safe methods pass (RFC 9110 section 9.2.1): they change nothing.
 * 2. A request that says it comes from another site is refused, whatever token it has. A signed token alone can be
 *    fetched by anybody and sent from anywhere.
 * 3. The token: in the header, or where there is no such header, in the field of a form body.
 *
 * Surprise: a body is read for its token only when nothing before has decided, and only when it is a form.
 */
import type { Context } from '../http/context.ts'
import { createOriginCheck } from '../http/origin.ts'
import { readFormField } from '../http/form-field.ts'
import type { CsrfReason } from './reason.ts'

/** Where a token is looked for. */
export interface TokenPlaces {
  /** The name of the header field, in any case. */
  readonly header: string
  /** The name of the form field. */
  readonly field: string
}

/** What a check comes to: a reason to refuse, or none. */
export type CsrfOutcome = 'ok' | CsrfReason

/** The kind of token: says what one is worth. */
export type CheckToken = (token: string) => CsrfOutcome

/** The check. It answers at once unless it reads a body, and rejects with the HttpError of one that cannot be read. */
export type CsrfCheck = (
  ctx: Context,
  places: TokenPlaces,
  checkToken: CheckToken,
) => CsrfOutcome | Promise<CsrfOutcome>

const safeMethods: readonly string[] = ['GET', 'HEAD', 'OPTIONS']

/**
 * Makes the check.
 * @param trustedOrigins `server.trusted_origins`
 * @throws Error naming the origin that is wrong
 */
export function createCsrfCheck(trustedOrigins: readonly string[]): CsrfCheck {
  const originCheck = createOriginCheck(trustedOrigins)
  return (ctx, places, checkToken) => {
    if (safeMethods.includes(ctx.method)) return 'ok'
    const scheme = ctx.secure ? 'https' : 'http'
    if (originCheck({ header: (name) => ctx.header(name), scheme, host: ctx.host }) === 'cross') return 'cross_site'
    const inHeader = ctx.header(places.header.toLowerCase())
    if (inHeader !== undefined) return checkOne([inHeader], checkToken)
    const inForm = readFormField(ctx, places.field)
    return inForm === undefined ? 'missing' : inForm.then((values) => checkOne(values, checkToken))
  }
}

function checkOne(values: readonly string[], checkToken: CheckToken): CsrfOutcome {
  const [token] = values
  if (values.length > 1) return 'malformed'
  return token === undefined || token === '' ? 'missing' : checkToken(token)
}
