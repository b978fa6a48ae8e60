/**
 * Request ids: which ones of clients are used, and new ones. A new id is a random prefix and a counter: it is unique
 * over restarts and processes, but no secret, since the next one can be guessed.
 */
import { randomBytes } from 'node:crypto'

const prefixBytes = 9
const counterDigits = 8
const requestIdPattern = /^[A-Za-z0-9_.-]{8,128}$/

/** Whether an `X-Request-Id` is used: 8 to 128 of `A-Za-z0-9_.-`. */
export function isRequestId(text: string): boolean {
  return requestIdPattern.test(text)
}

/** Makes a maker of request ids, each 20 of `A-Za-z0-9_-`. Two makers have the same prefix once in 2^72. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(prefixBytes).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return prefix + count.toString(36).padStart(counterDigits, '0')
  }
}
