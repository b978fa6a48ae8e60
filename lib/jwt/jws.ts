/**
 * JSON Web Signatures in the compact serialization, verified (RFC 7515, sections 5.2 and 7.1; RFC 8725).
 *
 * Surprise: of the header nothing but `alg` is used, and that only to choose among the algorithms of the configuration.
 * `jwk`, `jku`, `x5u` and `kid` are passed over: a token does not say by which key it is to be trusted.
 */
import { isUtf8 } from 'node:buffer'
import type { KeyObject } from 'node:crypto'
import { isObject } from '../base/object.ts'
import { algorithms, isAlgorithm, type Algorithm } from './algorithms.ts'
import { decodeBase64url } from './base64url.ts'

/** A JSON object, its members not looked at. */
export type JsonObject = Readonly<Record<string, unknown>>

/** What a signed payload says, or why it is not believed: in ASCII without quotes, and nothing of the token. */
export type JwsReading = { readonly payload: JsonObject } | { readonly problem: string }

/** The most bytes of a token. */
export const maxTokenBytes = 8192

/**
 * Verifies a token and reads its payload, which must be a JSON object. Never throws.
 * @param allowed the algorithms that may have been used, all of the kind of the key
 */
export function verifyJws(token: string, allowed: readonly Algorithm[], key: KeyObject): JwsReading {
  if (token.length > maxTokenBytes) return { problem: `the token is longer than ${maxTokenBytes} bytes` }
  const parts = token.split('.', 4)
  const [headerText, payloadText, signatureText] = parts
  if (parts.length !== 3 || headerText === undefined || payloadText === undefined || signatureText === undefined) {
    return { problem: 'the token is not of three parts with dots between them' }
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
    return { problem: 'the algorithm of the token is not one that is taken here' }
  }
  const signed = token.slice(0, headerText.length + 1 + payloadText.length)
  if (!algorithms[alg].verify(signed, signature, key)) return { problem: 'the signature of the token is wrong' }
  const payload = parseObject(payloadBytes)
  return payload === undefined ? { problem: 'the payload of the token is not a JSON object' } : { payload }
}

/** The JSON object in the bytes; undefined when they hold something else. Of members with one name the last counts. */
function parseObject(bytes: Buffer): JsonObject | undefined {
  if (!isUtf8(bytes)) return undefined
  let value: unknown
  try {
    value = JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
  return isObject(value) ? value : undefined
}
