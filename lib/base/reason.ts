/**
 * Thrown values. Anything can be thrown, and inspecting an object may throw too.
 */
import { inspect } from 'node:util'

/** Returns the message of a thrown value: the message of an Error, else the value as text. */
export function reasonOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** Whether the value is an Error. A revoked proxy, which throws on access, is not. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error
  } catch {
    return false
  }
}

/** Whether something was thrown because an AbortSignal aborted. */
export function isAbortError(thrown: unknown): boolean {
  return isError(thrown) && thrown.name === 'AbortError'
}

/** Returns a value as text: an error's stack, else the output of `util.inspect`. Never empty, never throws. */
export function textOf(value: unknown): string {
  try {
    if (isError(value) && typeof value.stack === 'string' && value.stack.trim() !== '') return value.stack
    return inspect(value, { breakLength: Number.POSITIVE_INFINITY, customInspect: false })
  } catch {
    return '(a value that cannot be shown)'
  }
}
