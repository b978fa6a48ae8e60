/**
 * The context members `session` and, by the specification, `USession()`, which returns it; and `SVC_MwSession`, which
 * opens the session of a request and saves it.
 */
import { after } from '../base/maybe-promise.ts'
import type { Next } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import { toHttpError } from '../http/error-reply.ts'
import type { Feature } from '../http/features.ts'
import { Session, type SessionServices } from './session.ts'

/** The member that sessions add to the context. */
export interface SessionMembers {
  /** The session of this request. Its methods throw on a route without `SVC_MwSession`. */
  readonly session: Session
}

/** Makes the feature. */
export function sessionFeature(services: SessionServices): Feature {
  return {
    name: 'session',
    members: [
      { name: 'session', make: (ctx) => new Session(ctx, services) },
      { name: 'USession', inViews: 'name', make: (ctx: CoreContext & SessionMembers) => () => ctx.session },
    ],
  }
}

/**
 * `SVC_MwSession`: opens the session, runs the rest of the chain, and saves the changes before the header section is
 * sent. It is synchronous if the store and the rest of the chain are. A second one on a route does nothing.
 *
 * If the chain throws an error below 500, the session is saved: the application intended that response, and its cookies
 * are sent. From 500 the changes of the request are dropped.
 * @throws the store's errors, and the chain's
 */
export function runWithSession(ctx: CoreContext & SessionMembers, next: Next): void | Promise<void> {
  const { session } = ctx
  if (session.isOpen) return next()
  const opening = session.open()
  return opening instanceof Promise ? opening.then(() => runOpen(session, next)) : runOpen(session, next)
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
