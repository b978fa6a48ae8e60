/**
 * Verifies JSON Web Tokens: the signature in compact serialization (RFC 7515, sections 5.2 and 7.1; RFC 8725), then the
 * claims for time, issuer and audience (RFC 7519, section 4.1).
 *
 * Only `alg` is used from the header, and only to choose among the configured algorithms. `jwk`, `jku`, `x5u` and `kid`
 * are ignored: a token does not choose the key that verifies it.
 *
 * Surprise: a key belongs to one kind of algorithm. Otherwise a public key, known to anyone, could be used as the
 * secret of an HMAC (RFC 8725, section 2.1).
 */
import { isUtf8 } from 'node:buffer'
import { createHmac, timingSafeEqual, verify, type KeyObject } from 'node:crypto'
import { isObject } from '../base/object.ts'
import { isAlgorithm, type Algorithm, type JwtSettings } from './settings.ts'

interface AlgorithmEntry {
  readonly kind: 'secret' | 'RSA' | 'P-256' | 'Ed25519'
  /** The minimum bytes of a secret (RFC 7518, section 3.2); 0 if the key is not a secret. */
  readonly secretBytes: number
  readonly verify: (signed: string, signature: Buffer, key: KeyObject) => boolean
}

/** The required claims, and the time tolerance. */
export type ClaimRules = Pick<JwtSettings, 'issuer' | 'audience' | 'leeway_s'>

type JsonObject = Readonly<Record<string, unknown>>

/** The maximum bytes of a token. */
export const maxTokenBytes = 8192

/** Every algorithm by its name (RFC 7518, section 3.1; RFC 8037, section 3.1). */
export const algorithms: Readonly<Record<Algorithm, AlgorithmEntry>> = {
  HS256: hmac('sha256', 32),
  HS384: hmac('sha384', 48),
  HS512: hmac('sha512', 64),
  RS256: publicKey('RSA', 'sha256'),
  ES256: publicKey('P-256', 'sha256'),
  EdDSA: publicKey('Ed25519', null),
}

/**
 * Verifies the signature of a token and reads its payload, which must be a JSON object. Never throws.
 * @param allowed the accepted algorithms, all of the kind of the key
 * @returns the payload, or why the token is refused: in ASCII, without quotes or any part of the token
 */
export function verifyJws(
  token: string,
  allowed: readonly Algorithm[],
  key: KeyObject,
): { readonly payload: JsonObject } | { readonly problem: string } {
  if (token.length > maxTokenBytes) return { problem: `the token is longer than ${maxTokenBytes} bytes` }
  const parts = token.split('.', 4)
  const [headerText, payloadText, signatureText] = parts
  if (parts.length !== 3 || headerText === undefined || payloadText === undefined || signatureText === undefined) {
    return { problem: 'the token does not have three parts with dots between them' }
  }
  const headerBytes = decodeBase64url(headerText)
  const payloadBytes = decodeBase64url(payloadText)
  const signature = decodeBase64url(signatureText)
  if (headerBytes === undefined || payloadBytes === undefined || signature === undefined) {
    return { problem: 'a part of the token is not base64url' }
  }
  const header = parseObject(headerBytes)
  if (header === undefined) return { problem: 'the header of the token is not a JSON object' }
  if ('crit' in header || 'b64' in header) return { problem: 'the header of the token has crit or b64' }
  const { alg } = header
  if (typeof alg !== 'string' || !isAlgorithm(alg) || !allowed.includes(alg)) {
    return { problem: 'the algorithm of the token is not accepted here' }
  }
  const signed = token.slice(0, headerText.length + 1 + payloadText.length)
  if (!algorithms[alg].verify(signed, signature, key)) return { problem: 'the signature of the token is wrong' }
  const payload = parseObject(payloadBytes)
  return payload === undefined ? { problem: 'the payload of the token is not a JSON object' } : { payload }
}

/**
 * Checks the claims. A time may have a fraction; the token is invalid from `exp` on. A missing claim is refused only
 * for a required issuer or audience: a token without `exp` is valid as long as its key.
 * @param nowMs milliseconds since 1970
 * @returns the problem, in ASCII without quotes; undefined for valid claims
 */
export function checkClaims(claims: JsonObject, rules: ClaimRules, nowMs: number): string | undefined {
  const nowS = nowMs / 1000
  const { exp, nbf, iss, aud } = claims
  if (exp !== undefined) {
    if (!isNumericDate(exp)) return 'exp is not a number'
    if (nowS >= exp + rules.leeway_s) return 'the token has expired'
  }
  if (nbf !== undefined) {
    if (!isNumericDate(nbf)) return 'nbf is not a number'
    if (nowS < nbf - rules.leeway_s) return 'the token is not valid yet'
  }
  if (rules.issuer !== '' && iss !== rules.issuer) return 'the token is from another issuer'
  if (rules.audience !== '' && !isMeantFor(aud, rules.audience)) return 'the token is for another audience'
  return undefined
}

/**
 * Decodes base64url without padding (RFC 7515, section 2).
 * @returns undefined when the text is not in canonical form. Node's decoder skips invalid characters; encoding its
 *   result again detects those, padding, an impossible length and bits set after the last byte
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

function hmac(hash: string, secretBytes: number): AlgorithmEntry {
  return {
    kind: 'secret',
    secretBytes,
    verify(signed, signature, key) {
      const expected = createHmac(hash, key).update(signed).digest()
      return signature.length === expected.length && timingSafeEqual(signature, expected)
    },
  }
}

function publicKey(kind: AlgorithmEntry['kind'], hash: string | null): AlgorithmEntry {
  return {
    kind,
    secretBytes: 0,
    // Only keys of a curve use the encoding.
    verify: (signed, signature, key) =>
      verify(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, signature),
  }
}

/** Parses a JSON object; undefined for anything else. The last of several equal names counts. */
function parseObject(bytes: Buffer): JsonObject | undefined {
  if (!isUtf8(bytes)) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** JSON text can contain numbers that parse as infinite. */
function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}

function isMeantFor(aud: unknown, audience: string): boolean {
  if (!Array.isArray(aud)) return aud === audience
  return aud.every((one) => typeof one === 'string') && aud.includes(audience)
}
