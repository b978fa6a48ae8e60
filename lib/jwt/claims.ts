/**
 * The claims of a JSON Web Token that say when, by whom and for whom it is good (RFC 7519, section 4.1).
 *
 * Surprise: a claim that is not there does not refuse a token, except for an issuer and an audience that are asked for.
 * A token without `exp` is good as long as its key is.
 */
import type { JsonObject } from './jws.ts'

/** What is asked of the claims. */
export interface ClaimRules {
  /** What `iss` must be; '' when it does not matter. */
  readonly issuer: string
  /** What `aud` must be or hold; '' when it does not matter. */
  readonly audience: string
  /** How many seconds the issuer's clock may differ from this one; 0 or more. */
  readonly leewayS: number
}

/**
 * Checks the claims. A time may have a fraction, and the end of `exp` does not belong to it.
 * @param nowMs milliseconds since 1970
 * @returns what is wrong, in ASCII without quotes; undefined when nothing is
 */
export function checkClaims(claims: JsonObject, rules: ClaimRules, nowMs: number): string | undefined {
  const nowS = nowMs / 1000
  const { exp, nbf, iss, aud } = claims
  if (exp !== undefined) {
    if (!isNumericDate(exp)) return 'exp is not a number'
    if (nowS >= exp + rules.leewayS) return 'the token has expired'
  }
  if (nbf !== undefined) {
    if (!isNumericDate(nbf)) return 'nbf is not a number'
    if (nowS < nbf - rules.leewayS) return 'the token is not valid yet'
  }
  if (rules.issuer !== '' && iss !== rules.issuer) return 'the token is of another issuer'
  if (rules.audience !== '' && !isMeantFor(aud, rules.audience)) return 'the token is for another audience'
  return undefined
}

/** JSON text can hold numbers that become infinite when they are read. */
function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isMeantFor(aud: unknown, audience: string): boolean {
  if (!Array.isArray(aud)) return aud === audience
  return aud.every((one) => typeof one === 'string') && aud.includes(audience)
}
