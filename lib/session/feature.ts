/**
 * The context members of sessions: `session`, and the specification's `USession()`, which returns it.
 */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { Session, type SessionServices } from './session.ts'

/** The members that sessions add to the context. */
export interface SessionMembers {
  /** The session of this request. Its methods throw on a route without `SVC_MwSession`. */
  readonly session: Session
  /** Returns `session`. */
  readonly USession: () => Session
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
