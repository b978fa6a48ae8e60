/**
 * What sessions add to the context: `session`, and the specification's name for it.
 *
 * Surprise: `session` is the session, `USession` a function that returns it.
 */
import type { Feature } from '../http/features.ts'
import { Session, type SessionServices } from './session.ts'

declare module '../http/context.ts' {
  interface Context {
    /** The session of this request. What it is asked fails on a route without `SVC_MwSession`. */
    readonly session: Session
    /** Returns `session`. */
    readonly USession: () => Session
  }
}

/** Makes the feature. */
export function sessionFeature(services: SessionServices): Feature {
  return {
    name: 'session',
    members: [
      { name: 'session', make: (ctx) => new Session(ctx, services) },
      { name: 'USession', inViews: 'name', make: (ctx) => () => ctx.session },
    ],
  }
}
