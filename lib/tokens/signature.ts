/**
 * Signatures of tokens: the lower-case hex HMAC-SHA256 of a text (RFC 2104, FIPS 180-4). CSRF tokens use it too, with
 * keys of their own.
 *
 * Surprise: the first key signs, every key verifies: a key can be changed while forms that the old one signed are open.
 */
import { Buffer } from 'node:buffer'
import { createHmac, timingSafeEqual, type KeyObject } from 'node:crypto'

/** Signs texts and verifies signatures. */
export interface Signer {
  /** The signature of a text: 64 lower-case hex digits. */
  sign(text: string): string
  /** Whether a signature belongs to a text, told in constant time. Never throws. */
  verify(text: string, signature: string): boolean
}

/** The hexadecimal digits of a signature. */
const signatureLength = 64
const noHexDigit = /[^0-9a-f]/

/**
 * Makes a signer.
 * @param keys the first one signs, all verify
 * @param importKey makes the key that signs of the text of a key
 * @throws RangeError when there is no key, or one is empty: anybody could sign with it
 */
export function createSigner(keys: readonly string[], importKey: (key: string) => KeyObject): Signer {
  const [first, ...others] = keys.map((key, at) => {
    if (key === '') throw new RangeError(`Cannot sign tokens: no key may be empty: key ${at + 1} is`)
    return importKey(key)
  })
  if (first === undefined) throw new RangeError('Cannot sign tokens: there must be a key: there is none')
  const verifying = [first, ...others]
  return {
    sign: (text) => hmac(first, text),
    verify: (text, signature) => verifying.some((key) => isEqual(hmac(key, text), signature)),
  }
}

/**
 * Takes `text.signature` apart, where the text has no dot; undefined when it has another shape. The signature has not
 * been verified.
 */
export function splitSigned(token: string): { readonly text: string; readonly signature: string } | undefined {
  const dot = token.length - signatureLength - 1
  if (dot < 1 || token.indexOf('.') !== dot) return undefined
  const signature = token.slice(dot + 1)
  return noHexDigit.test(signature) ? undefined : { text: token.slice(0, dot), signature }
}

/** Whether two texts are the same. How long that takes tells nothing but their length. */
export function isEqual(text: string, other: string): boolean {
  const bytes = Buffer.from(text)
  const others = Buffer.from(other)
  return bytes.length === others.length && timingSafeEqual(bytes, others)
}

function hmac(key: KeyObject, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex')
}
