/**
 * Resource-id tokens: `<payload>.<signature>`. The payload is the base64 (RFC 4648 section 4, padded) of the UTF-8 of
 * `<id>|<unix seconds>`, the signature the lower-case hex HMAC-SHA256 of the payload text with `app_key` itself.
 *
 * Surprise: a token only proves that this application made it. Anybody can read its id, it does not expire, and the
 * action must check whether the client may use the resource.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { createSecretKey } from 'node:crypto'
import { createSigner, splitSigned, type TokenOptions } from './signature.ts'

/** Makes and reads tokens. */
export type ResourceTokens = ReturnType<typeof createResourceTokens>

const timestampShape = /^[0-9]{1,12}$/

/**
 * Makes the tokens of a server.
 * @throws RangeError if there is no key, or a key is empty
 */
export function createResourceTokens({ keys, now }: TokenOptions) {
  const signer = createSigner(keys, (key) => createSecretKey(key, 'utf8'))
  return {
    /**
     * Returns the token of an id.
     * @throws TypeError for a text with half a surrogate pair, which UTF-8 cannot encode
     */
    make(id: string): string {
      if (!id.isWellFormed()) {
        throw new TypeError(`Cannot sign a resource id: it must be well-formed Unicode: it is ${JSON.stringify(id)}`)
      }
      const payload = Buffer.from(`${id}|${Math.floor(now() / 1000)}`).toString('base64')
      return `${payload}.${signer.sign(payload)}`
    },
    /** Returns the id in a token; '' if no key signed it, or its encoding is not canonical. Never throws. */
    read(token: string): string {
      const signed = splitSigned(token)
      return signed === undefined || !signer.verify(signed.text, signed.signature) ? '' : idIn(signed.text)
    },
  }
}

/** Returns the id in a payload. Checks the form, since the application may sign other texts with the same key. */
function idIn(payload: string): string {
  const bytes = Buffer.from(payload, 'base64')
  if (bytes.toString('base64') !== payload || !isUtf8(bytes)) return ''
  const text = bytes.toString()
  const bar = text.lastIndexOf('|')
  return bar >= 0 && timestampShape.test(text.slice(bar + 1)) ? text.slice(0, bar) : ''
}
