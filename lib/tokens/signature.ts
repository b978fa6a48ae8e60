/**
 * Signatures of tokens: the lower-case hex HMAC-SHA256 of a text (RFC 2104, FIPS 180-4).
 *
 * The first key signs and every key verifies, so that a key can be changed while forms signed with the old key are
 * open.
 */
import { Buffer } from 'node:buffer'
import { createHmac, createSecretKey, hkdfSync, timingSafeEqual, type KeyObject } from 'node:crypto'

/** How tokens are made. */
export interface TokenOptions {
  /** `app_key`, which signs, then `app_key_previous`, which only verify. */
  readonly keys: readonly string[]
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** In hexadecimal digits. */
const signatureLength = 64
const noHexDigit = /[^0-9a-f]/

/**
 * Makes a signer.
 * @param keys the first signs, all verify
 * @param importKey turns the text of a key into the key to sign with
 * @throws RangeError if there is no key, or a key is empty, since anybody could sign with it
 */
export function createSigner(keys: readonly string[], importKey: (key: string) => KeyObject) {
  const [first, ...others] = keys.map((key, at) => {
    if (key === '') throw new RangeError(`Cannot sign tokens: no key may be empty: key ${at + 1} is`)
    return importKey(key)
  })
  if (first === undefined) throw new RangeError('Cannot sign tokens: there must be a key: there is none')
  const verifying = [first, ...others]
  return {
    /** Returns the signature of a text: 64 lower-case hex digits. */
    sign: (text: string): string => hmac(first, text),
    /** Whether a signature belongs to a text. In constant time; never throws. */
    verify: (text: string, signature: string): boolean =>
      verifying.some((key) => isEqual(hmac(key, text), signature)),
  }
}

/** Derives a key for one use from `app_key` (HKDF, RFC 5869). A key for one use reveals nothing about others. */
export function deriveKey(key: string, use: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', key, '', use, 32)))
}

/** Splits `text.signature`, where the text has no dot; undefined for any other form. Does not verify the signature. */
export function splitSigned(token: string): { readonly text: string; readonly signature: string } | undefined {
  const dot = token.length - signatureLength - 1
  if (dot < 1 || token.indexOf('.') !== dot) return undefined
  const signature = token.slice(dot + 1)
  return noHexDigit.test(signature) ? undefined : { text: token.slice(0, dot), signature }
}

/** Whether two texts are equal. Its duration depends only on their lengths. */
export function isEqual(text: string, other: string): boolean {
  const bytes = Buffer.from(text)
  const others = Buffer.from(other)
  return bytes.length === others.length && timingSafeEqual(bytes, others)
}

function hmac(key: KeyObject, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex')
}
