/** The context members of the kit: the nonce of an answer, passwords, signing in and out. */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { SessionMembers } from '../session/feature.ts'
import { isNobody } from '../session/is-auth.ts'
import type { Passwords } from './password.ts'

/** The member that the kit adds to the context and other parts of the server use. */
export interface KitMembers {
  /**
   * The nonce of this answer, for `<script nonce>` and `<style nonce>`: 128 random bits. The first use adds it to the
   * Content-Security-Policy of `SVC_MwHeaders`, and sets `Cache-Control: private, no-cache` unless the field is set. ''
   * where that middleware did not run.
   */
  readonly cspNonce: string
}

interface FeatureParts {
  /** Makes the nonce of an answer. */
  readonly nonceOf: (ctx: CoreContext) => string
  readonly passwords: Passwords
  /** The key of the session that names the user. */
  readonly userKey: () => string
}

/**
 * Makes the feature. `signIn` throws TypeError for a user that names nobody or that JSON cannot hold; it and `signOut`
 * throw an Error on a route without `SVC_MwSession`.
 */
export function kitFeature({ nonceOf, passwords, userKey }: FeatureParts): Feature {
  const makeSignIn = ({ session }: CoreContext & SessionMembers) => (user: unknown): void => {
    if (isNobody(user)) {
      throw new TypeError(`Cannot sign in: ${JSON.stringify(user) ?? 'undefined'} names no user: give a name or an id`)
    }
    session.set(userKey(), user)
    session.regenerate()
  }
  const makeSignOut = ({ session }: CoreContext & SessionMembers) => (): void => session.destroy()
  return {
    name: 'kit',
    members: [
      { name: 'cspNonce', aliases: ['csp_nonce'], inViews: 'aliases', make: nonceOf },
      { name: 'password', make: () => passwords },
      { name: 'signIn', make: makeSignIn },
      { name: 'signOut', make: makeSignOut },
    ],
  }
}
