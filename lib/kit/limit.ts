/**
 * The group `limit`: `SVC_MwLimit:<rule>` lets a client make so many requests in so much time. Each member of
 * `setup.limit` is a rule, and a middleware of its name. The code that counts is loaded when there is a rule.
 */
import type { OpenLog } from '../base/ports.ts'
import { isObject } from '../base/object.ts'
import { isToken } from '../base/token.ts'
import { readSettings, SettingsError, settingsTable } from '../chain/settings.ts'
import type { BuiltInGroup, PreparedSettings, SettingsOf } from '../chain/settings.ts'
import type { Middleware } from '../chain/compose.ts'
import type { CoreContext } from '../http/context.ts'
import type { BucketSize, BucketStore } from './buckets.ts'
import type { LimitRule } from './limit-rule.ts'

/** The options of the group. */
export interface LimitGroupOptions {
  readonly log: OpenLog
  /** Whether an address is that of a trusted proxy. */
  readonly isTrusted: (address: string) => boolean
  /** The user of a request; anything that names nobody counts as none. */
  readonly userOf: (ctx: CoreContext) => unknown
  /** Opens the buckets of a rule where they are shared with other processes; in this process unless given. */
  readonly openBuckets?: ((rule: string, size: BucketSize) => BucketStore) | undefined
}

/** The group, with what the operator may see of it. */
export interface LimitGroup extends BuiltInGroup {
  /** The refused requests of each rule since the start. */
  readonly refused: () => Readonly<Record<string, number>>
  readonly warnings: () => readonly string[]
}

const name = 'limit'
const namePattern = /^[\w.-]{1,64}$/

const table = settingsTable({
  by: {
    kind: 'string', default: 'address', check: checkBy,
    meaning: 'Whose requests are counted together: those of one `address` (an IPv6 address counts by its /64), of one '
      + '`user` (`ctx.state.user`, else that of the session, else `sub` of `ctx.state.jwt`, else the address), or with '
      + 'one value of a field, `header:x-client`, which counts only from `server.trusted_proxies` (else the address).',
  },
  count: {
    kind: 'integer', min: 1, max: 1_000_000, default: 60,
    meaning: 'Requests in `per_s` seconds.',
  },
  per_s: {
    kind: 'integer', min: 1, max: 86_400, default: 60,
    meaning: 'Seconds in which `count` requests are allowed.',
  },
  burst: {
    kind: 'integer', min: 0, max: 1_000_000, default: 0,
    meaning: 'Requests that may come at once after a pause; 0: as many as `count`.',
  },
})

/** The settings of a rule. */
export type RuleSettings = SettingsOf<typeof table>

/** Makes the group. */
export function createLimitGroup(options: LimitGroupOptions): LimitGroup {
  let code: typeof import('./limit-rule.ts') | undefined
  /** By name. Rules that are gone stay: their counters must not decrease. */
  const counts = new Map<string, number>()
  let current: ReadonlyMap<string, LimitRule> = new Map()

  function prepare(given: unknown): PreparedSettings {
    const { rules, warnings } = readRules(given)
    const made = new Map<string, LimitRule>()
    for (const [rule, settings] of rules) {
      if (code === undefined) throw new Error('The code that counts requests is not loaded')
      const kept = current.get(rule)
      const isKept = kept !== undefined && JSON.stringify(kept.settings) === JSON.stringify(settings)
      const onRefused = (): void => void counts.set(rule, (counts.get(rule) ?? 0) + 1)
      made.set(rule, isKept ? kept : code.createLimitRule(rule, settings, { ...options, onRefused }))
    }
    return {
      warnings,
      middleware: new Map([...made].map(([rule, { run }]): [string, Middleware] => [`SVC_MwLimit:${rule}`, run])),
      commit: () => {
        current = made
        for (const rule of made.keys()) if (!counts.has(rule)) counts.set(rule, 0)
      },
    }
  }

  return {
    name,
    table,
    middleware: new Map(),
    async load() {
      code = await import('./limit-rule.ts')
    },
    prepare,
    refused: () => Object.fromEntries(counts),
    warnings: () => [...new Set([...current.values()].flatMap((rule) => rule.warnings()))],
  }
}

/** @throws SettingsError with every problem */
function readRules(given: unknown): { rules: Map<string, RuleSettings>; warnings: string[] } {
  if (given !== undefined && !isObject(given)) {
    throw new SettingsError([`setup.${name} must be an object: each member is a rule`])
  }
  const rules = new Map<string, RuleSettings>()
  const warnings: string[] = []
  const problems: string[] = []
  for (const [rule, value] of Object.entries(given ?? {})) {
    if (!namePattern.test(rule)) {
      const found = JSON.stringify(rule)
      problems.push(`setup.${name} must have names of 1 to 64 letters, digits, _ . or -: one is ${found}`)
      continue
    }
    try {
      const read = readSettings(`${name}.${rule}`, table, value)
      rules.set(rule, read.settings)
      warnings.push(...read.warnings)
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      problems.push(...error.problems)
    }
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return { rules, warnings }
}

function checkBy(text: string): string | undefined {
  const field = /^header:(.*)$/.exec(text)?.[1]
  if (text === 'address' || text === 'user' || (field !== undefined && isToken(field))) return undefined
  return 'must be "address", "user" or "header:" with the name of a field'
}
