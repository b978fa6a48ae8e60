/**
 * What a request is answered when the server that it needs is away.
 */
import { HttpError } from '../http/errors.ts'
import { isTemporary } from './errors.ts'

const headers = { 'Retry-After': '1' }

/** The error of a request for what a client failed with: 503 `shared_away` where it may work in a while, else the same. */
export function answerFor(error: unknown): unknown {
  if (!isTemporary(error)) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new HttpError(503, 'shared_away', reason, { headers, cause: error })
}
