/**
 * Puts a configuration together: the defaults, above them the values of a file, above them the overrides, all checked.
 *
 * Surprise: an override does not mend a wrong value of the file. The file would fail the next time it is used without.
 */
import { findEntries } from './entries.ts'
import type { Entries, Finding } from './entries.ts'
import { configTable, fileKeys } from './table.ts'
import type { Config, ConfigKey } from './table.ts'
import { readValue } from '../base/value.ts'

/**
 * What came out: a frozen configuration, with the default in the place of each value that is wrong, and the problems.
 */
export interface Assembled {
  readonly config: Config
  readonly problems: readonly Finding[]
  /** Keys that nobody knows. */
  readonly unknown: readonly Finding[]
}

type Values = Partial<Record<ConfigKey, unknown>>

/** Assembles the values of a file, nested or dotted, and overrides, dotted. It throws nothing. */
export function assembleConfig(value: unknown, overrides: Partial<Config>): Assembled {
  const values = defaults()
  const file = apply(values, value)
  const above = apply(values, overrides)
  const notOfTheFile = (finding: Finding): Finding => ({ text: finding.text, path: undefined })
  const problems = [...file.problems, ...above.problems.map(notOfTheFile)]
  const unknown = [...file.unknown, ...above.unknown.map(notOfTheFile)]
  const config = Object.freeze(values) as Config // every key has its default or a value that its row lets through
  problems.push(...problemsTogether(config).map(({ text, key }) => ({ text, path: file.found.get(key)?.path })))
  return { config, problems, unknown }
}

function defaults(): Values {
  const values: Values = {}
  for (const [fileKey, key] of fileKeys()) {
    const preset = configTable[key].default
    put(values, fileKey, key, typeof preset === 'object' ? Object.freeze([...preset]) : preset)
  }
  return values
}

function apply(values: Values, value: unknown): Entries {
  const { found, problems, unknown } = findEntries(value)
  const all = [...problems]
  for (const [fileKey, key] of fileKeys()) {
    const entry = found.get(fileKey)
    if (entry === undefined) continue
    const reading = readValue(configTable[key], entry.value)
    if ('problem' in reading) all.push({ text: `${fileKey} ${reading.problem}`, path: entry.path })
    else put(values, fileKey, key, reading.value)
  }
  return { found, problems: all, unknown }
}

/** Sets a key; a switch in a frozen copy of its row's switches. */
function put(values: Values, fileKey: string, key: ConfigKey, value: unknown): void {
  const switches = values[key] as Readonly<Record<string, boolean>> | undefined // for a switch it is one of these
  values[key] = fileKey === key ? value : Object.freeze({ ...switches, [fileKey.slice(key.length + 1)]: value })
}

/** What is wrong between keys that are right each for itself. */
function problemsTogether(config: Config): { readonly text: string; readonly key: ConfigKey }[] {
  const { 'log.file': log, 'access_log.file': accessLog } = config
  if (log !== accessLog) return []
  return [
    { text: `access_log.file must differ from log.file: both are ${JSON.stringify(log)}`, key: 'access_log.file' },
  ]
}
