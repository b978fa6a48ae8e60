/**
 * The configuration as applications see it: by the dotted keys, and by groups as `svc.json` nests them. Both mean the
 * same in the file, so both mean the same here.
 */
import type { Config } from './table.ts'

/** `config['server.port']` and `config.server.port`. The types know the dotted keys; a group is unknown to them. */
export type GroupedConfig = Config & Readonly<Record<string, unknown>>

interface Group {
  [name: string]: unknown
}

/** Returns a frozen copy with the groups added. */
export function withGroups(config: Config): GroupedConfig {
  const grouped: Group = { ...config }
  for (const [key, value] of Object.entries(config)) {
    const names = key.split('.')
    const last = names.pop() as string // A split text has at least one part.
    if (names.length === 0) continue
    let group = grouped
    // No key is also a group: a test of the table holds it.
    for (const name of names) group = (group[name] ??= {}) as Group
    group[last] = value
  }
  for (const group of Object.values(grouped)) freezeGroups(group)
  return Object.freeze(grouped) as GroupedConfig
}

function freezeGroups(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const inner of Object.values(value)) freezeGroups(inner)
}
