/**
 * Middleware that limits what browsers do with responses: `SVC_MwHeaders` and `SVC_MwCors`. Also the related members of
 * the context: the nonce of a response, passwords, signing in and out.
 *
 * Both also have a part outside the chains: `SVC_MwHeaders` may set the fields of responses without a route, and
 * `SVC_MwCors` answers preflights before any middleware runs.
 */
import type { KeyDerivation } from '../access/key-derivation.ts'
import { jsonText } from '../base/json-text.ts'
import type { BuiltInGroup } from '../chain/settings.ts'
import type { Chain } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { BodyReply } from '../http/reply.ts'
import type { Registry } from '../routing/registry.ts'
import type { SessionMembers } from '../session/feature.ts'
import { isNobody } from '../session/is-auth.ts'
import { pageToReturnTo } from './return-to.ts'
import { createCorsGroup } from './cors.ts'
import { createHeadersGroup } from './headers.ts'
import { createPasswords } from './password.ts'

/** The context member that other rooms use too. */
export interface ProtectionMembers {
  /**
   * The nonce of this response, for `<script nonce>` and `<style nonce>`: 128 random bits. The first use adds it to the
   * Content-Security-Policy of `SVC_MwHeaders`, and sets `Cache-Control: private, no-cache` unless the field is set. ''
   * if that middleware did not run.
   */
  readonly cspNonce: string
}

/** What a server uses of this room. */
export interface Protection {
  readonly groups: readonly BuiltInGroup[]
  readonly feature: Feature
  /** Sets the header fields of a response without a route. */
  readonly headersWithoutRoute: (ctx: CoreContext) => void
  /** The reply to a CORS preflight of a route with `SVC_MwCors`; undefined for any other request. */
  readonly preflight: (ctx: CoreContext) => BodyReply | undefined
}

interface ProtectionOptions {
  /** Finds the route of a preflight, and that of a page to return to. */
  readonly registry: Pick<Registry<Chain>, 'find' | 'allowed'>
  /** `server.trusted_origins`. */
  readonly trustedOrigins: readonly string[]
  readonly keyDerivation: KeyDerivation
  /** The key of the session that names the user. */
  readonly userKey: () => string
}

/**
 * Makes the protection of one server. `ctx.signIn` throws TypeError for a user that is empty or that JSON cannot
 * hold; it and `ctx.signOut` throw an Error on a route without `SVC_MwSession`.
 */
export function createProtection({ registry, trustedOrigins, keyDerivation, userKey }: ProtectionOptions): Protection {
  const headers = createHeadersGroup()
  const cors = createCorsGroup(trustedOrigins)
  const passwords = createPasswords(keyDerivation)
  const makeSignIn = ({ session }: CoreContext & SessionMembers) => (user: unknown): void => {
    if (isNobody(user)) {
      throw new TypeError(`Cannot sign in: ${JSON.stringify(user) ?? 'undefined'} names no user: give a name or an id`)
    }
    jsonText(user, 'Cannot sign in: JSON cannot hold the user')
    session.set(userKey(), user)
    session.regenerate()
  }
  const makeSignOut = ({ session }: CoreContext & SessionMembers) => (): void => session.destroy()
  const userOf = ({ session }: CoreContext & SessionMembers): unknown => {
    const user = session.isOpen ? session.get(userKey()) : undefined
    return isNobody(user) ? undefined : user
  }
  return {
    groups: [headers, cors],
    feature: {
      name: 'protection',
      members: [
        { name: 'cspNonce', aliases: ['csp_nonce'], inViews: 'aliases', make: (ctx) => headers.nonceOf(ctx) },
        { name: 'password', make: () => passwords },
        { name: 'signIn', make: makeSignIn },
        { name: 'signOut', make: makeSignOut },
        { name: 'user', isFresh: true, make: userOf },
        { name: 'returnTo', make: (ctx) => (fallback = `${ctx.prefix}/`) => pageToReturnTo(ctx, registry) ?? fallback },
      ],
    },
    headersWithoutRoute: (ctx) => headers.headersWithoutRoute(ctx),
    preflight: (ctx) => cors.preflight(ctx, registry),
  }
}
