/**
 * Request ids: which ones are taken over from the client, and new ones.
 *
 * Surprise: a new id is a random prefix and a counter. It is unique over restarts and processes, but it is no secret:
 * whoever sees one can guess the next.
 */
import { randomBytes } from 'node:crypto'

const prefixBytes = 9
const counterDigits = 8
const requestIdPattern = /^[A-Za-z0-9_.-]{8,128}$/

/** Whether an `X-Request-Id` is taken over: 8 to 128 of `A-Za-z0-9_.-`. */
export function isRequestId(text: string): boolean {
  return requestIdPattern.test(text)
}

/** Builds a maker of request ids, each of 20 of `A-Za-z0-9_-`. Two makers share a prefix once in 2^72. */
export function createRequestIds(): () => string {
  const prefix = randomBytes(prefixBytes).toString('base64url')
  let count = 0
  return () => {
    count += 1
    return prefix + count.toString(36).padStart(counterDigits, '0')
  }
}
