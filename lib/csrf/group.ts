/**
 * The group `csrf` of the server's own middleware: both middlewares, their settings, and what they add to the context.
 */
import type { Context } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { BuiltInGroup } from '../chain/built-in.ts'
import { readSettings } from '../chain/settings.ts'
import { createCsrfCheck } from './check.ts'
import { csrfFeature } from './feature.ts'
import { createStatefulMiddleware, createStatelessMiddleware } from './middleware.ts'
import { createSessionTokens } from './session-token.ts'
import { csrfTable } from './settings.ts'
import { createCsrfTokens } from './token.ts'

/** What the group is made of. */
export interface CsrfGroupOptions {
  /** `app_key`, which signs, then those of `app_key_previous`, which verify only. */
  readonly keys: readonly string[]
  /** `server.trusted_origins`. */
  readonly trustedOrigins: readonly string[]
  /** The log of a module. */
  readonly log: (module: string) => ModuleLogger
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** The group, and the feature that goes with it. */
export interface CsrfGroup extends BuiltInGroup {
  readonly feature: Feature
}

const name = 'csrf'

/**
 * Makes the group, with the default settings.
 * @throws RangeError when there is no key, or one is empty; Error naming a trusted origin that is wrong
 */
export function createCsrfGroup({ keys, trustedOrigins, log, now }: CsrfGroupOptions): CsrfGroup {
  let current = readSettings(name, csrfTable, undefined).settings
  const parts = {
    check: createCsrfCheck(trustedOrigins),
    tokens: createCsrfTokens({ keys, now }),
    sessionTokens: createSessionTokens(keys[0] as string), // createCsrfTokens has refused an empty list
    settings: () => current,
    statefulRequests: new WeakSet<Context>(),
    log: log('error'),
  }
  return {
    name,
    table: csrfTable,
    middleware: new Map([
      ['SVC_MwCsrfCheck', createStatelessMiddleware(parts)],
      ['SVC_MwCsrf', createStatefulMiddleware(parts)],
    ]),
    requires: new Map([['SVC_MwCsrf', 'SVC_MwSession']]),
    feature: csrfFeature(parts),
    prepare(given) {
      const { settings, warnings } = readSettings(name, csrfTable, given)
      return {
        warnings,
        unready: undefined,
        commit: () => void (current = settings),
        abandon: () => {},
      }
    },
  }
}
