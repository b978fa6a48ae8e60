/**
 * Makes a configuration of a value: finds its keys, checks them, and puts them above the defaults.
 *
 * Keys may be nested, dotted or both: `{"log": {"level": ...}}` and `{"log.level": ...}` are the same key. An unknown
 * key is a warning, not a problem; it is kept when the file is changed.
 */
import { nearest } from '../base/nearest.ts'
import { isObject } from '../base/object.ts'
import { readValue } from '../base/value.ts'
import { configKeys, configTable } from './table.ts'
import type { Config, ConfigKey } from './table.ts'

/** A key that was found, the names that lead to it from the outside in, and its value. */
export interface Entry {
  readonly key: string
  readonly path: readonly string[]
  readonly value: unknown
}

/** A message about a key. */
export interface Finding {
  readonly text: string
  /** The names that lead to the key in its file; undefined: it is not about a file. */
  readonly path: readonly string[] | undefined
  /** The index of that file, or one beyond them for an override; 0 unless given. */
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

/** A configuration of several layers, and what was found in them. */
interface Assembled {
  /** Frozen, with the default for each wrong value. */
  readonly config: Config
  readonly problems: readonly Finding[]
  readonly unknown: readonly Finding[]
  /** The keys that a later layer has taken from an earlier one, in the order of the table. */
  readonly replaced: readonly string[]
}

/**
 * Assembles the values of files, nested or dotted, each above those before it, and overrides, dotted, above them all. A
 * wrong value is a problem, even where a later layer has a right one: the file may be used without that. It throws
 * nothing.
 */
export function assembleConfig(files: readonly unknown[], overrides: Partial<Config> = {}): Assembled {
  const values = defaults()
  const layers = [...files, overrides].map((value) => apply(values, value))
  const problems = layers.flatMap((entries, layer) => entries.problems.map((finding) => ({ ...finding, layer })))
  const unknown = layers.flatMap((entries, layer) => entries.unknown.map((finding) => ({ ...finding, layer })))
  const config = Object.freeze(values) as Config // every key has its default or a value that its row lets through
  const { 'log.file': log, 'access_log.file': accessLog } = config
  if (log === accessLog) {
    const text = `access_log.file must differ from log.file: both are ${JSON.stringify(log)}`
    const layer = layers.findLastIndex(({ found }) => found.has('access_log.file'))
    problems.push({ text, path: layers[layer]?.found.get('access_log.file')?.path, layer })
  }
  for (const key of ['log.file', 'access_log.file'] as const) {
    if (config[key] !== 'audit.log') continue
    const layer = layers.findLastIndex(({ found }) => found.has(key))
    const text = `${key} must not be "audit.log": changes are recorded there`
    problems.push({ text, path: layers[layer]?.found.get(key)?.path, layer })
  }
  const ofFiles = layers.slice(0, -1)
  const replaced = configKeys.filter((key) => ofFiles.filter(({ found }) => found.has(key)).length > 1)
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
      if (member === undefined || (section === '' && name === '$schema')) continue // That is for editors.
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
      const text = `${entry.key} is there twice, as ${written(first.path)} and as ${written(entry.path)}`
      problems.push({ text, path: entry.path })
    }
  }
}

/** The sections of a key: `server.tls.cert` is in `server` and `server.tls`. */
export function sectionsOf(key: string): string[] {
  const names = key.split('.')
  return names.slice(1).map((_, index) => names.slice(0, index + 1).join('.'))
}

/** Returns a frozen copy with the sections added, for applications: both forms mean the same in the file. */
export function withSections(config: Config): SectionedConfig {
  const sectioned: Record<string, unknown> = { ...config }
  const sections = new Set([sectioned])
  for (const [key, value] of Object.entries(config)) {
    const names = key.split('.')
    const last = names.pop() as string // A split text has at least one part.
    let section = sectioned
    for (const name of names) {
      section = (section[name] ??= {}) as Record<string, unknown> // A test holds that no key is also a section.
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
    values[key] = typeof preset === 'object' ? Object.freeze([...preset]) : preset
  }
  return values
}

function apply(values: Values, value: unknown): Entries {
  const { found, problems, unknown } = findEntries(value)
  const all = [...problems]
  for (const key of configKeys) {
    const entry = found.get(key)
    if (entry === undefined) continue
    const reading = readValue(configTable[key], entry.value)
    if ('problem' in reading) all.push({ text: `${key} ${reading.problem}`, path: entry.path })
    else values[key] = reading.value
  }
  return { found, problems: all, unknown }
}

function shapeProblem(section: string, value: unknown, known: ReadonlySet<string>): string {
  const is = value === null ? 'null' : Array.isArray(value) ? 'a list' : `a ${typeof value}`
  if (section === '') return `the configuration must be an object, {...}: it is ${is}`
  const names = [...known].filter((key) => key.startsWith(`${section}.`)).map((key) => key.slice(section.length + 1))
  return `${section} must be an object with ${names.join(', ')}: it is ${is}`
}

function unknownText(key: string, candidates: readonly string[]): string {
  const leaf = (candidate: string): string => candidate.slice(candidate.lastIndexOf('.') + 1)
  const sameLeaf = candidates.filter((candidate) => leaf(candidate) === leaf(key))
  const meant = nearest(key, candidates) ?? (sameLeaf.length === 1 ? sameLeaf[0] : undefined)
  const shown = /^[\w.-]+$/.test(key) ? key : JSON.stringify(key)
  const short = shown.length > 100 ? `${shown.slice(0, 100)}...` : shown
  return `unknown key ${short}${meant === undefined ? '' : `: did you mean ${meant}?`}`
}

function written(path: readonly string[]): string {
  return path.map((name) => JSON.stringify(name)).join(': ')
}
