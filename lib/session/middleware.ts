/**
 * `SVC_MwSession`: opens the session of the request, runs the rest of the chain, and saves what changed before the
 * headers leave. Synchronous as long as the store and the rest of the chain are.
 */
import type { Context } from '../http/context.ts'
import { toHttpError } from '../http/error-reply.ts'
import type { Next } from '../chain/compose.ts'
import { after } from '../base/maybe-promise.ts'
import type { Session } from './session.ts'

/**
 * The middleware. The second one on a route does nothing.
 *
 * When the chain throws, the session is saved if the error is an answer that the application meant (below 500), since
 * its cookies are sent. From 500 on what the request changed is dropped.
 * @throws what the store fails with, and what the chain throws
 */
export function runWithSession(ctx: Context, next: Next): void | Promise<void> {
  const { session } = ctx
  if (session.isOpen) return next()
  return after(session.open(), () => runOpen(session, next))
}

function runOpen(session: Session, next: Next): void | Promise<void> {
  let outcome: void | Promise<void>
  try {
    outcome = next()
  } catch (error) {
    return saveAfterFailure(session, error)
  }
  if (!(outcome instanceof Promise)) return session.finish()
  return outcome.then(
    () => session.finish(),
    (error: unknown) => saveAfterFailure(session, error),
  )
}

function saveAfterFailure(session: Session, error: unknown): void | Promise<void> {
  if (toHttpError(error).status >= 500) throw error
  return after(session.finish(), () => {
    throw error
  })
}
