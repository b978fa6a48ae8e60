/**
 * What a request is answered when the server that it needs is away.
 */
import { reasonOf } from '../base/reason.ts'
import { HttpError } from '../http/errors.ts'
import { isTemporary, RedisAwayError } from './errors.ts'

const headers = { 'Retry-After': '1' }

/** The error of a request for what a client failed with: 503 `shared_away` where it may work in a while, else the same. */
export function answerFor(error: unknown): unknown {
  if (!isTemporary(error)) return error
  return awayError(reasonOf(error), error)
}

/** The error of a request that what is shared does not take now: 503 `shared_away`. */
export function awayError(reason: string, cause?: unknown): HttpError {
  return new HttpError(503, 'shared_away', reason, { headers, cause })
}

/**
 * What was asked for, or the error of a request as {@link answerFor} has it.
 * @param what is asked for, in the words of a log line: `a session`
 * @param onProblem told that a server which is there refuses it for now. That it is away shows in the client's state
 */
export async function answered<T>(what: string, reply: Promise<T>, onProblem: (message: string) => void): Promise<T> {
  try {
    return await reply
  } catch (error) {
    if (isTemporary(error) && !(error instanceof RedisAwayError)) {
      onProblem(`the shared engine refuses ${what}: ${(error as Error).message}`) // isTemporary knows Errors alone.
    }
    throw answerFor(error)
  }
}
