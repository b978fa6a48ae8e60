/** Keys and tokens for the tests of `lib/jwt`. */
import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'

/** 64 bytes, enough for every HMAC. */
export const secret = 's'.repeat(64)

export const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
export const ed25519 = generateKeyPairSync('ed25519')

/** Encodes a part of a token: a value as JSON; text and bytes unchanged. */
export function part(value: unknown): string {
  const bytes = typeof value === 'string' || value instanceof Uint8Array ? value : JSON.stringify(value)
  return Buffer.from(bytes as string).toString('base64url')
}

/** Signs a header and a payload, unchanged, with an HMAC. */
export function hmacToken(header: unknown, payload: unknown, key = secret, hash = 'sha256'): string {
  const signed = `${part(header)}.${part(payload)}`
  return `${signed}.${createHmac(hash, key).update(signed).digest('base64url')}`
}

/** Signs with a private key. */
export function signedToken(alg: 'RS256' | 'ES256' | 'EdDSA', payload: unknown, key: KeyObject): string {
  const signed = `${part({ alg })}.${part(payload)}`
  const hash = alg === 'EdDSA' ? null : 'sha256'
  const signature = sign(hash, Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
  return `${signed}.${signature.toString('base64url')}`
}

/** Exports a key as PEM. */
export function pem(key: KeyObject): string {
  return String(key.export({ type: key.type === 'public' ? 'spki' : 'pkcs8', format: 'pem' }))
}

/** Exports a key as the text of a JWK, with further members. */
export function jwk(key: KeyObject, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ ...key.export({ format: 'jwk' }), ...more })
}
