/**
 * Signed CSRF tokens: `<payload>.<signature>`. The payload is the base64url (RFC 4648, section 5, no padding) of
 * `<nonce>|<unix seconds>`, the signature the lower-case hex HMAC-SHA256 of the payload text. The key is derived from
 * `app_key` (HKDF, RFC 5869) for this use only, so that no resource-id token passes as a CSRF token.
 *
 * The server stores no tokens, and using a token does not invalidate it: until it expires it is valid for everybody, so
 * that tabs and the back button keep working. `check.ts` decides whether the request comes from this site.
 */
import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { createSigner, deriveKey, splitSigned, type TokenOptions } from '../tokens/signature.ts'

/** The result of checking a token. */
export type TokenVerdict = 'ok' | 'malformed' | 'expired' | 'signature'

/** Makes and checks tokens. */
export type CsrfTokens = ReturnType<typeof createCsrfTokens>

/** How many seconds the clock that made a token may be ahead of this one. */
const maxAheadSeconds = 300
const textShape = /^[0-9a-f-]{36}\|([0-9]{1,12})$/

/**
 * Makes the tokens of a server.
 * @throws RangeError if there is no key, or a key is empty
 */
export function createCsrfTokens({ keys, now }: TokenOptions) {
  const signer = createSigner(keys, (key) => deriveKey(key, 'svc csrf token'))
  return {
    /** Returns a new token: 128 characters that need no HTML escaping. */
    make(): string {
      const payload = Buffer.from(`${randomUUID()}|${Math.floor(now() / 1000)}`).toString('base64url')
      return `${payload}.${signer.sign(payload)}`
    },
    /**
     * Checks a token, its signature first: no other part is trusted before. Never throws.
     * @param lapseS the maximum age in seconds; 0: unlimited
     */
    check(token: string, lapseS: number): TokenVerdict {
      const signed = splitSigned(token)
      if (signed === undefined) return 'malformed'
      if (!signer.verify(signed.text, signed.signature)) return 'signature'
      const [, seconds] = textShape.exec(Buffer.from(signed.text, 'base64url').toString('latin1')) ?? []
      if (seconds === undefined) return 'malformed'
      if (lapseS === 0) return 'ok'
      const ageSeconds = Math.floor(now() / 1000) - Number(seconds)
      return ageSeconds > lapseS || ageSeconds < -maxAheadSeconds ? 'expired' : 'ok'
    },
  }
}
