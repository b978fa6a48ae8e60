/** Signatures of manifests: Ed25519 (RFC 8032) over the bytes, in base64. */
import { createPublicKey, verify, type KeyObject } from 'node:crypto'
import { reasonOf } from '../base/reason.ts'

/**
 * Checks a signature.
 * @param pem the public key, as `openssl pkey -pubout` prints it
 * @param signature base64 of 64 bytes, with or without a line end
 * @returns what is wrong; undefined if the signature is right
 */
export function signatureFault(bytes: Uint8Array, signature: string, pem: string): string | undefined {
  const key = publicKeyOf(pem)
  if (typeof key === 'string') return key
  const text = signature.trimEnd()
  const decoded = Buffer.from(text, 'base64')
  if (decoded.length !== 64 || decoded.toString('base64') !== text) {
    return 'the signature must be the base64 of 64 bytes'
  }
  if (verify(null, bytes, key, decoded)) return undefined
  return 'the signature does not fit: the manifest was changed, or signed with another key'
}

/** @returns the key, or what is wrong with it */
function publicKeyOf(pem: string): KeyObject | string {
  const isPrivate = /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem)
  if (isPrivate) return 'the key is private: pass the public one (openssl pkey -pubout)'
  try {
    const key = createPublicKey(pem)
    if (key.asymmetricKeyType === 'ed25519') return key
    return `the key must be of Ed25519: it is of ${key.asymmetricKeyType ?? 'an unknown kind'}`
  } catch (error) {
    return `the key is no public key in PEM: ${reasonOf(error)}`
  }
}
