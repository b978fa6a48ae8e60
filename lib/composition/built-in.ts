/** The built-in middleware, and the members that its groups add to the context. */
import type { BuiltInGroup } from '../chain/settings.ts'
import type { Chain } from '../chain/compose.ts'
import { createKeyDerivation, type KeyDerivation } from '../access/key-derivation.ts'
import type { LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import { createCsrfGroup } from '../csrf/group.ts'
import { flashFeature } from '../flash/feature.ts'
import { isAtOrIn } from '../files/paths.ts'
import { createClientAddress } from '../http/client-address.ts'
import type { Feature } from '../http/features.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { createLimitGroup } from '../protection/limit.ts'
import { createProtection } from '../protection/protection.ts'
import type { Registry } from '../routing/registry.ts'
import { createSessionGroup } from '../session/group.ts'
import { createAuthGroup } from '../session/is-auth.ts'
import type { OpenReplies } from '../session/open-replies.ts'
import { resourceIdFeature } from '../tokens/feature.ts'
import { createResourceTokens } from '../tokens/resource-id.ts'
import { validateFeature } from '../validation/feature.ts'
import { createMessageGroup } from '../validation/messages.ts'
import type { Backends } from './backends.ts'
import type { LocalData } from './local-data.ts'
import { createJwtGroup } from './jwt-group.ts'

/** The parts and settings of the middleware of one server. */
interface BuiltInOptions {
  readonly loaded: LoadedConfig
  /** Sign and verify tokens, the current key first. */
  readonly keys: readonly string[]
  readonly log: (module: string) => ModuleLogger
  readonly registry: Registry<Chain>
  readonly data: Pick<LocalData, 'openSessions'>
  readonly backends: Backends
  readonly openReplies: OpenReplies
}

/** The middleware, and the parts of it used elsewhere. */
export interface BuiltIn {
  readonly groups: readonly BuiltInGroup[]
  readonly features: readonly Feature[]
  readonly sessions: ReturnType<typeof createSessionGroup>
  readonly csrf: ReturnType<typeof createCsrfGroup>
  readonly limits: ReturnType<typeof createLimitGroup>
  readonly protection: ReturnType<typeof createProtection>
  /** Hashes the passwords of the application's users and of the panel. */
  readonly keyDerivation: KeyDerivation
}

/** Creates the groups. `MiddlewareHost` reads their settings later. */
export function createBuiltIn(options: BuiltInOptions): BuiltIn {
  const { loaded, keys, log, registry, data, backends, openReplies } = options
  const { config, folder } = loaded
  const { 'server.trusted_origins': trustedOrigins } = config
  const now = Date.now
  const open = publicFolder(loaded)
  const isPublic = (path: string): boolean => open !== undefined && isAtOrIn(open, path)
  const stores = { openStoreHere: data.openSessions, ...backends }
  const sessions = createSessionGroup({ ...stores, folder, isPublic, log, openReplies })
  const csrf = createCsrfGroup({ keys, trustedOrigins, log, now })
  const auth = createAuthGroup({ log })
  const jwt = createJwtGroup({ folder, publicFolder: open, log, now })
  const keyDerivation = createKeyDerivation()
  const protection = createProtection({ registry, trustedOrigins, keyDerivation, userKey: auth.userKey })
  const { trusts: isTrusted } = createClientAddress(config['server.trusted_proxies'])
  const limits = createLimitGroup({ log, isTrusted, userOf: auth.userOf, openBuckets: backends.openBuckets })
  const messages = createMessageGroup()
  const features = [
    sessions.feature,
    flashFeature(log),
    csrf.feature,
    resourceIdFeature(createResourceTokens({ keys, now })),
    protection.feature,
    validateFeature({ registry, textOf: messages.textOf, csrfField: csrf.field }),
  ]
  const groups = [sessions, csrf, auth, jwt, limits, messages, ...protection.groups]
  return { groups, features, sessions, csrf, limits, protection, keyDerivation }
}
