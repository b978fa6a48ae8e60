/**
 * What work throws that was told to give up by an AbortSignal.
 */
import { isError } from '../log/stack.ts'

/** Whether something was thrown because a signal aborted. */
export function isAbortError(thrown: unknown): boolean {
  return isError(thrown) && thrown.name === 'AbortError'
}
