/**
 * Builds a configuration from values: finds their keys, checks them, and merges them over the defaults.
 *
 * Keys may be nested, dotted or both: `{"log": {"level": ...}}` and `{"log.level": ...}` are the same key. An unknown
 * key is a warning, not a problem; saving the file keeps it.
 */
import { nearest } from '../base/nearest.ts'
import { isObject } from '../base/object.ts'
import { readValue } from '../base/value.ts'
import { frozen, leavesOf, mergeObjects, readObject, replacedKeys, typeName } from './objects.ts'
import type { AnyObject, IsSingle } from './objects.ts'
import { isReference } from './settings.ts'
import { configKeys, configTable } from './table.ts'
import type { Config, ConfigKey, KeyRow } from './table.ts'

/** A key found in a value, its path from the outside in, and its value. */
export interface Entry {
  readonly key: string
  readonly path: readonly string[]
  readonly value: unknown
}

/** A message about a key. */
export interface Finding {
  readonly text: string
  /** The path of the key in its file; undefined when the message is not about a file. */
  readonly path: readonly string[] | undefined
  /** The index of that file, or the number of files for an override. Default: 0. */
  readonly layer?: number
}

/** The keys of a value by name, problems with its shape, and its unknown keys. */
interface Entries {
  readonly found: ReadonlyMap<string, Entry>
  readonly problems: readonly Finding[]
  readonly unknown: readonly Finding[]
}

/**
 * The configuration by dotted keys and by sections: `config['server.port']` and `config.server.port`. The types know
 * the dotted keys only.
 */
export type SectionedConfig = Config & Readonly<Record<string, unknown>>

type Values = Partial<Record<ConfigKey, unknown>>

/** Keys of earlier versions, each with what to do about it now. A removed key stays here. */
const formerKeys = new Map([
  ['server.pipeline_limit', 'remove it, since the requests of a connection are served one at a time'],
])

/** A configuration merged from several layers, and the findings in them. */
interface Assembled {
  /** Frozen, with the default for each wrong value. */
  readonly config: Config
  readonly problems: readonly Finding[]
  readonly unknown: readonly Finding[]
  /** The keys that more than one file sets, in the order of the table; of `settings` and `setup` each member. */
  readonly replaced: readonly string[]
}

/**
 * Merges the values of files, nested or dotted, each over the previous ones, and then the dotted overrides. A wrong
 * value is a problem even where a later layer replaces it, since the file may be used without that layer. Never throws.
 */
export function assembleConfig(files: readonly unknown[], overrides: Partial<Config> = {}): Assembled {
  const values = defaults()
  const layers = [...files, overrides].map((value) => apply(values, value))
  const problems = layers.flatMap((entries, layer) => entries.problems.map((finding) => ({ ...finding, layer })))
  const unknown = layers.flatMap((entries, layer) => entries.unknown.map((finding) => ({ ...finding, layer })))
  const config = Object.freeze(values) as Config // Every key has its default or a checked value.
  const { 'log.file': log, 'access_log.file': accessLog } = config
  if (log === accessLog) {
    const text = `access_log.file must differ from log.file: both are ${JSON.stringify(log)}`
    const layer = layers.findLastIndex(({ found }) => found.has('access_log.file'))
    problems.push({ text, path: layers[layer]?.found.get('access_log.file')?.path, layer })
  }
  for (const key of ['log.file', 'access_log.file'] as const) {
    if (!config[key].startsWith('audit.log')) continue
    const layer = layers.findLastIndex(({ found }) => found.has(key))
    const text = `${key} must not begin with "audit.log", where changes are recorded: it is "${config[key]}"`
    problems.push({ text, path: layers[layer]?.found.get(key)?.path, layer })
  }
  const fileLayers = layers.slice(0, -1)
  const replaced = configKeys.flatMap((key) => {
    const [first, second] = fileLayers.flatMap(({ found }) => found.get(key) ?? [])
    if (second === undefined) return []
    return isAnyObject(key) ? replacedKeys(key, first?.value, second.value, isSingleIn(key)) : [key]
  })
  return { config, problems, unknown, replaced }
}

/** Finds the keys of a value, which must be an object. A member that is `undefined` counts as absent. */
export function findEntries(value: unknown): Entries {
  const found = new Map<string, Entry>()
  const problems: Finding[] = []
  const unknown: Finding[] = []
  const known = new Set<string>(configKeys)
  const sections = new Set([...known].flatMap(sectionsOf))

  visit(value, '', [])
  return { found, problems, unknown }

  function visit(object: unknown, section: string, path: readonly string[]): void {
    if (!isObject(object)) {
      problems.push({ text: shapeProblem(section, object, known), path })
      return
    }
    for (const [name, member] of Object.entries(object)) {
      if (member === undefined || (section === '' && name === '$schema')) continue // Only editors use it.
      const key = section === '' ? name : `${section}.${name}`
      if (known.has(key)) add({ key, path: [...path, name], value: member })
      else if (sections.has(key)) visit(member, key, [...path, name])
      else unknown.push({ text: unknownText(key, [...known, ...sections]), path: [...path, name] })
    }
  }

  function add(entry: Entry): void {
    const first = found.get(entry.key)
    if (first === undefined) {
      found.set(entry.key, entry)
    } else {
      const text = `${entry.key} is set twice, as ${quotePath(first.path)} and as ${quotePath(entry.path)}`
      problems.push({ text, path: entry.path })
    }
  }
}

/** Returns an entry; for an object of any content one for each value in it. */
export function leafEntriesOf(entry: Entry): Entry[] {
  const { key, path, value } = entry
  if (!isAnyObject(key)) return [entry]
  return leavesOf(key, value, isSingleIn(key)).map((leaf) => ({ ...leaf, path: [...path, ...leaf.path] }))
}

/** Returns the sections of a key: `server.tls.cert` is in `server` and `server.tls`. */
export function sectionsOf(key: string): string[] {
  const names = key.split('.')
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('.'))
}

/** Returns a frozen copy with the sections added, for applications: the file accepts both forms too. */
export function withSections(config: Config): SectionedConfig {
  const sectioned: Record<string, unknown> = { ...config }
  const sections = new Set([sectioned])
  for (const [key, value] of Object.entries(config)) {
    const names = key.split('.')
    const last = names.pop() as string // split() returns at least one part.
    let section = sectioned
    for (const name of names) {
      section = (section[name] ??= {}) as Record<string, unknown> // A test ensures that no key is also a section.
      sections.add(section)
    }
    section[last] = value
  }
  for (const section of sections) Object.freeze(section)
  return sectioned as SectionedConfig
}

function defaults(): Values {
  const values: Values = {}
  for (const key of configKeys) {
    const preset = configTable[key].default
    values[key] = frozen(preset)
  }
  return values
}

function apply(values: Values, value: unknown): Entries {
  const { found, problems, unknown } = findEntries(value)
  const all = [...problems]
  for (const key of configKeys) {
    const entry = found.get(key)
    if (entry === undefined) continue
    const row: KeyRow = configTable[key]
    const reading = row.kind === 'object' ? readObject(entry.value, row.check) : readValue(row, entry.value)
    if ('problem' in reading) all.push({ text: `${key} ${reading.problem}`, path: entry.path })
    else values[key] = row.kind === 'object' ? merged(key, values[key], reading.value) : reading.value
  }
  return { found, problems: all, unknown }
}

/** Whether a key takes an object of any content. */
function isAnyObject(key: string): boolean {
  return configTable[key as ConfigKey]?.kind === 'object'
}

/** Returns which objects in the value of a key are single values: references, which only settings have. */
function isSingleIn(key: string): IsSingle {
  return key === 'settings' ? isReference : () => false
}

/** Both values have been read as objects. */
function merged(key: string, under: unknown, over: unknown): AnyObject {
  return mergeObjects(under as AnyObject, over as AnyObject, isSingleIn(key))
}

function shapeProblem(section: string, value: unknown, known: ReadonlySet<string>): string {
  const is = typeName(value)
  if (section === '') return `the configuration must be an object, {...}: it is ${is}`
  const names = [...known].filter((key) => key.startsWith(`${section}.`)).map((key) => key.slice(section.length + 1))
  return `${section} must be an object with ${names.join(', ')}: it is ${is}`
}

function unknownText(key: string, candidates: readonly string[]): string {
  const remedy = formerKeys.get(key)
  if (remedy !== undefined) return `${key} is a key of an earlier version: ${remedy}`
  const leaf = (candidate: string): string => candidate.slice(candidate.lastIndexOf('.') + 1)
  const sameLeaf = candidates.filter((candidate) => leaf(candidate) === leaf(key))
  const meant = nearest(key, candidates) ?? (sameLeaf.length === 1 ? sameLeaf[0] : undefined)
  const shown = /^[\w.-]+$/.test(key) ? key : JSON.stringify(key)
  const short = shown.length > 100 ? `${shown.slice(0, 100)}...` : shown
  return `unknown key ${short}${meant === undefined ? '' : `: did you mean ${meant}?`}`
}

function quotePath(path: readonly string[]): string {
  return path.map((name) => JSON.stringify(name)).join(': ')
}
