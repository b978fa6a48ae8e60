/**
 * `SVC_MwSession`: opens the session of the request, runs the rest of the chain, and saves what changed before the
 * headers leave. Synchronous as long as the store and the rest of the chain are.
 */
import type { CoreContext } from '../http/context.ts'
import { toHttpError } from '../http/error-reply.ts'
import type { Next } from '../chain/compose.ts'
import { after } from '../base/maybe-promise.ts'
import type { SessionMembers } from './feature.ts'
import type { Session } from './session.ts'

/**
 * The middleware. A second one on the same route does nothing.
 *
 * When the chain throws, the session is saved if the error is below 500: the application meant that answer, and its
 * cookies are sent. From 500 on the changes of the request are dropped.
 * @throws the store's errors, and the chain's
 */
export function runWithSession(ctx: CoreContext & SessionMembers, next: Next): void | Promise<void> {
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
