/**
 * The group `limit`: `SVC_MwLimit:<rule>` limits the requests of a client in a period. Each member of `setup.limit`
 * defines a rule, and a middleware with its name.
 */
import { isObject } from '../base/object.ts'
import type { Middleware } from '../chain/compose.ts'
import { readSettings, SettingsError, type BuiltInGroup, type PreparedSettings } from '../chain/settings.ts'
import { createLimitRule, ruleTable, type LimitGroupOptions, type LimitRule, type RuleSettings } from './limit-rule.ts'

/** The group, with what the operator sees of it. */
export interface LimitGroup extends BuiltInGroup {
  /** The refused requests of each rule since the start. */
  readonly refused: () => Readonly<Record<string, number>>
  readonly warnings: () => readonly string[]
}

const name = 'limit'
const namePattern = /^[\w.-]{1,64}$/

/** Makes the group. */
export function createLimitGroup(options: LimitGroupOptions): LimitGroup {
  /** By name. Removed rules stay: their counters must not decrease. */
  const counts = new Map<string, number>()
  let current: ReadonlyMap<string, LimitRule> = new Map()

  function prepare(given: unknown): PreparedSettings {
    const { rules, warnings } = readRules(given)
    const made = new Map<string, LimitRule>()
    for (const [rule, settings] of rules) {
      const kept = current.get(rule)
      const isKept = kept !== undefined && JSON.stringify(kept.settings) === JSON.stringify(settings)
      const onRefused = (): void => void counts.set(rule, (counts.get(rule) ?? 0) + 1)
      made.set(rule, isKept ? kept : createLimitRule(rule, settings, { ...options, onRefused }))
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
    table: ruleTable,
    middleware: new Map(),
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
      const read = readSettings(`${name}.${rule}`, ruleTable, value)
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
