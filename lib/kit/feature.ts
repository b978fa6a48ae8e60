/** The context members of the kit: the nonce of an answer, passwords, signing in and out. */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { SessionMembers } from '../session/feature.ts'
import { isNobody } from '../session/is-auth.ts'
import type { Passwords } from './password.ts'

/** The members that the kit adds to the context. */
export interface KitMembers {
  /**
   * The nonce of this answer, for `<script nonce>` and `<style nonce>`: 128 random bits. The first use adds it to the
   * Content-Security-Policy of `SVC_MwHeaders`, and sets `Cache-Control: private, no-cache` unless the field is set. ''
   * where that middleware did not run.
   */
  readonly cspNonce: string
  /** The name of `cspNonce` in views. */
  readonly csp_nonce: string
  /** Hashes and checks passwords of users. */
  readonly password: Passwords
  /**
   * Signs a user in, as `SVC_MwIsAuth` knows them: the session gets the user and a new id, and loses its CSRF token.
   * What was opened under the old id ends.
   * @param user any JSON value: a name, an id, an object
   * @throws TypeError for what names nobody (undefined, null, false, '') or JSON cannot hold; Error on a route without
   *   `SVC_MwSession`
   */
  readonly signIn: (user: unknown) => void
  /**
   * Ends the session with all that it holds, and the streams, polls and WebSockets that it opened. What is set
   * afterwards, such as a flash message, begins a new one.
   * @throws Error on a route without `SVC_MwSession`
   */
  readonly signOut: () => void
}

interface FeatureParts {
  /** Makes the nonce of an answer. */
  readonly nonceOf: (ctx: CoreContext) => string
  readonly passwords: Passwords
  /** The key of the session that names the user. */
  readonly userKey: () => string
}

/** Makes the feature. */
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
