/**
 * The signature algorithms of `SVC_MwJwt` (RFC 7518, section 3.1; RFC 8037, section 3.1), and how each is verified.
 *
 * Surprise: a key belongs to one kind. That is what keeps a public key, which anyone may know, from being taken for the
 * secret of an HMAC (RFC 8725, section 2.1).
 */
import { createHmac, timingSafeEqual, verify, type KeyObject } from 'node:crypto'

/** The kinds of keys. */
export type KeyKind = 'secret' | 'RSA' | 'P-256' | 'Ed25519'

interface AlgorithmEntry {
  readonly kind: KeyKind
  /** The least bytes of a secret (RFC 7518, section 3.2); 0 where the key is none. */
  readonly secretBytes: number
  readonly verify: (signed: string, signature: Buffer, key: KeyObject) => boolean
}

/** What `setup.jwt.algorithms` may name. */
export const algorithmNames = ['HS256', 'HS384', 'HS512', 'RS256', 'ES256', 'EdDSA'] as const

export type Algorithm = (typeof algorithmNames)[number]

/** Every algorithm by its name. */
export const algorithms: Readonly<Record<Algorithm, AlgorithmEntry>> = {
  HS256: hmac('sha256', 32),
  HS384: hmac('sha384', 48),
  HS512: hmac('sha512', 64),
  RS256: {
    kind: 'RSA',
    secretBytes: 0,
    verify: (signed, signature, key) => verify('sha256', Buffer.from(signed), key, signature),
  },
  ES256: {
    kind: 'P-256',
    secretBytes: 0,
    verify: (signed, signature, key) =>
      verify('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }, signature),
  },
  EdDSA: {
    kind: 'Ed25519',
    secretBytes: 0,
    verify: (signed, signature, key) => verify(null, Buffer.from(signed), key, signature),
  },
}

/** Whether a text names an algorithm. */
export function isAlgorithm(text: string): text is Algorithm {
  return (algorithmNames as readonly string[]).includes(text) // wider, so that any text may be looked for
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
