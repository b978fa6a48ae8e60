/**
 * Middleware against what browsers can be made to do: `SVC_MwHeaders` and `SVC_MwCors`. Their code is loaded when the
 * middleware configuration has their settings, or a route names them.
 *
 * Both also have a part outside of the chains: `SVC_MwHeaders` may set the fields of answers without a route, and
 * `SVC_MwCors` answers preflights before any middleware runs.
 */
import type { Scrypt } from '../admin/password.ts'
import type { BuiltInGroup, PreparedSettings } from '../chain/settings.ts'
import type { Chain } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { BodyReply } from '../http/reply.ts'
import type { Registry } from '../routing/registry.ts'
import type { CorsGroup } from './cors.ts'
import { kitFeature } from './feature.ts'
import type { HeadersGroup } from './headers.ts'
import { createPasswords } from './password.ts'

/** The parts of the kit. */
export interface Kit {
  readonly groups: readonly Omit<BuiltInGroup, 'table'>[]
  readonly feature: Feature
  /** Sets the header fields of an answer without a route. */
  readonly unrouted: (ctx: CoreContext) => void
  /** The reply to a CORS preflight of a route with `SVC_MwCors`; undefined for any other request. */
  readonly preflight: (ctx: CoreContext) => BodyReply | undefined
}

interface KitOptions {
  /** Finds the route that a preflight asks about. */
  readonly registry: Pick<Registry<Chain>, 'find'>
  /** `server.trusted_origins`. */
  readonly trustedOrigins: readonly string[]
  readonly scrypt: Scrypt
  /** The key of the session that names the user. */
  readonly userKey: () => string
}

const notLoaded: PreparedSettings = { warnings: [], commit: () => {} }

/** Makes the kit of one server. */
export function createKit({ registry, trustedOrigins, scrypt, userKey }: KitOptions): Kit {
  let headers: HeadersGroup | undefined
  let cors: CorsGroup | undefined
  return {
    groups: [
      onDemand('headers', 'SVC_MwHeaders', async () => {
        return (headers = (await import('./headers.ts')).createHeadersGroup())
      }),
      onDemand('cors', 'SVC_MwCors', async () => {
        return (cors = (await import('./cors.ts')).createCorsGroup(trustedOrigins))
      }),
    ],
    feature: kitFeature({
      nonceOf: (ctx) => headers?.nonceOf(ctx) ?? '',
      passwords: createPasswords(scrypt),
      userKey,
    }),
    unrouted: (ctx) => headers?.unrouted(ctx),
    preflight: (ctx) => cors?.preflight(ctx, registry),
  }
}

/** A group whose code is loaded when it is needed. Without settings it has their defaults. */
function onDemand(
  name: string,
  middleware: string,
  open: () => Promise<BuiltInGroup>,
): Omit<BuiltInGroup, 'table'> {
  let group: BuiltInGroup | undefined
  const load = async (): Promise<void> => {
    group ??= await open()
  }
  return {
    name,
    middleware: new Map([
      [
        middleware,
        (ctx, next) => {
          const run = group?.middleware.get(middleware)
          if (run === undefined) throw new Error(`The code of ${middleware} is not loaded`)
          return run(ctx, next)
        },
      ],
    ]),
    load,
    loadForRoute: load,
    prepare: (given) => group?.prepare(given) ?? notLoaded,
  }
}
