/**
 * Finds, reads and checks the configuration: `svc.json` and, merged over it, `svc.local.json` beside it, for the
 * settings of one machine.
 *
 * A missing file is not an error: the defaults are used, with a warning, and nothing is written. All problems of a
 * file are reported at once, in one ConfigError.
 */
import { existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { nodeAt } from '../json/json-map.ts'
import { readJsonFile, type JsonFile } from '../json/read-json.ts'
import { mayOthersRead } from '../files/paths.ts'
import { assembleConfig, findEntries, leafEntriesOf, type Entry, type Finding } from './assemble.ts'
import { isSecret } from './objects.ts'
import { readSettings, referencesIn, type ReadSettings } from './settings.ts'
import { configKeys, configTable } from './table.ts'
import type { Config, ConfigKey } from './table.ts'

/** A configuration file with its absolute path. */
interface ConfigDocument extends JsonFile {
  readonly file: string
}

/** A checked configuration. */
export interface LoadedConfig {
  readonly config: Config
  /** `settings`, with texts instead of references. */
  readonly settings: ReadSettings
  /** The absolute path of the file that was read; undefined when there was none. */
  readonly file: string | undefined
  /** The absolute path of the file's folder, the base of relative paths. */
  readonly folder: string
  /** The absolute path of the local file; undefined when there was none. */
  readonly localFile?: string | undefined
  /** The keys that both files set; of `settings` and `setup` each member. */
  readonly overridden?: readonly string[]
  /** Warnings about unknown keys, each with the nearest known one, and about a missing file. */
  readonly warnings: readonly string[]
  /** The files that were read, the local one last. */
  readonly documents: readonly ConfigDocument[]
  /**
   * Where each value comes from, such as `svc.json, line 12`; an absent key has its default. Each value in `settings`
   * and `setup` has a source; that of a reference is `env NAME`, `credential NAME` or `file PATH`.
   */
  readonly sources: Readonly<Record<string, string>>
}

/** Thrown when the configuration cannot be used. The message contains all problems; `problems` lists them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]
  /** Warnings about unknown keys, as in LoadedConfig. */
  readonly warnings: readonly string[]
  /** The configuration with the default for each wrong value, for further checks; undefined when nothing was read. */
  readonly rest: LoadedConfig | undefined

  /**
   * @param source what was loaded: a file, or a phrase that describes it
   * @param problems at least one
   */
  constructor(
    source: string,
    problems: readonly string[],
    options: { warnings?: readonly string[]; rest?: LoadedConfig; cause?: unknown } = {},
  ) {
    const list = problems.length === 1 ? problems[0] : `${problems.length} problems\n  ${problems.join('\n  ')}`
    super(`Cannot load ${source}: ${list}`, options)
    this.problems = problems
    this.warnings = options.warnings ?? []
    this.rest = options.rest
  }
}

/** A problem with a value of a loaded configuration. */
export interface ValueProblem {
  readonly key: ConfigKey
  readonly text: string
  /** The path of a member of `settings`. */
  readonly path?: readonly string[]
}

/** The source in messages about a configuration passed as a value. */
const valueSource = 'the configuration'

/** Creates the error for one or more problems with values, each with its line in the file. */
export function errorOfValues(
  { file, documents }: LoadedConfig,
  problems: readonly ValueProblem[],
  cause?: unknown,
): ConfigError {
  const entries = documents.map(({ value }) => findEntries(value).found)
  const findings = problems.map(({ key, text, path: below = [] }): Finding => {
    const paths = entries.map((found) => [...(found.get(key)?.path ?? [key]), ...below])
    const layer = documents.findLastIndex(({ root }, at) => nodeAt(root, paths[at] ?? []) !== undefined)
    return { text, path: paths[layer], layer }
  })
  return new ConfigError(file ?? valueSource, inOrder(findings, documents), { cause })
}

/** The configuration file, and how it was chosen. */
interface FoundConfigFile {
  /** The absolute path. */
  readonly file: string
  /** The option or variable that names the file, which must then exist; otherwise undefined. */
  readonly namedBy: '--config' | '$SVC_CONFIG' | undefined
  /** Whether it is the file shipped with the server. */
  readonly isDemo: boolean
}

/**
 * Finds the configuration file: `--config`, else `$SVC_CONFIG`, else `svc.json` in the working directory if it exists,
 * else the one beside `package.json`. The file need not exist.
 */
export function findConfigFile(options: {
  config?: string | undefined
  env: NodeJS.ProcessEnv
  cwd: string
  packageFolder: string
}): FoundConfigFile {
  const { config, env: { SVC_CONFIG: variable = '' }, cwd, packageFolder } = options
  if (config !== undefined && config !== '') return { file: resolve(cwd, config), namedBy: '--config', isDemo: false }
  if (variable !== '') return { file: resolve(cwd, variable), namedBy: '$SVC_CONFIG', isDemo: false }
  const here = resolve(cwd, 'svc.json')
  const isDemo = !existsSync(here)
  return { file: isDemo ? resolve(packageFolder, 'svc.json') : here, namedBy: undefined, isDemo }
}

/** Returns the local file beside a configuration file: `svc.local.json` beside `svc.json`. It need not exist. */
export function localFileOf(file: string): string {
  return `${file.replace(/\.json$/, '')}.local.json`
}

/** Returns the file that changes are written to: the local one if it exists or `config.local` is set. */
export function fileToWrite(file: string, config: Config): string {
  const local = localFileOf(file)
  return config['config.local'] || existsSync(local) ? local : file
}

/**
 * Reads a configuration file and the local one beside it. Never writes.
 * @param overrides values that replace those of the files: `--host`, `--port` and `--env` of the command line
 * @param from the source of each secret passed to the process, by key: an override, or the password of `shared.url`.
 *   The other overrides are command-line options
 * @throws ConfigError when a file cannot be read, is not JSON, or contains values that are not allowed
 */
export function loadConfig(
  file: string,
  overrides: Partial<Config> = {},
  from: Readonly<Record<string, string | undefined>> = {},
): LoadedConfig {
  const path = resolve(file)
  const main = readDocument(path)
  const local = readDocument(localFileOf(path))
  const documents = [main, local].filter((document) => document !== undefined)
  const place = { file: main?.file, localFile: local?.file, folder: dirname(path), documents }
  const loaded = checked(documents.map(({ value }) => value), overrides, path, place)
  const missing = main === undefined ? [`${path} does not exist: the defaults are used`] : []
  const sources = Object.fromEntries([
    ...documents.flatMap(placesOf),
    ...referencesIn(loaded.config.settings).map(({ key, source }) => [key, source]),
    ...Object.keys(overrides).map((key) => [key, from[key] ?? 'a command-line option']),
  ])
  const secretWarnings = documents.flatMap((document) => [
    ...hiddenSecrets(document, overrides, from),
    ...exposedSecrets(document),
  ])
  return { ...loaded, sources, warnings: [...missing, ...loaded.warnings, ...secretWarnings] }
}

/**
 * Reads a configuration file without the local one, for tests: nothing is ever written to it.
 * @param layers values that are merged over it, nested or dotted, each over the previous ones
 * @throws ConfigError as `loadConfig` does
 */
export function loadWithLayers(file: string, layers: readonly unknown[]): LoadedConfig {
  const path = resolve(file)
  const main = readDocument(path)
  const place = { file: undefined, folder: dirname(path), documents: main === undefined ? [] : [main] }
  const loaded = checked([main?.value ?? {}, ...layers], {}, path, place)
  return { ...loaded, sources: Object.fromEntries(place.documents.flatMap(placesOf)) }
}

/**
 * Checks a configuration passed as a value, nested or dotted, as to `createApp({config})`. A member that is undefined
 * counts as absent.
 * @param folder the base of relative paths
 * @throws ConfigError
 */
export function parseConfig(value: unknown, folder: string): LoadedConfig {
  const loaded = checked([value], {}, valueSource, { file: undefined, folder: resolve(folder), documents: [] })
  const entries = [...findEntries(value).found.values()].flatMap(leafEntriesOf)
  const sources = Object.fromEntries([
    ...entries.map(({ key }) => [key, 'createApp']),
    ...referencesIn(loaded.config.settings).map(({ key, source }) => [key, source]),
  ])
  return { ...loaded, sources }
}

/**
 * Returns a warning for each secret of the application in `svc.json`, if there is a local file to keep it in: then
 * `svc.json` is meant for version control.
 */
export function warningsOfCommittedSecrets({ config, file, localFile, documents }: LoadedConfig): string[] {
  if (localFile === undefined && !config['config.local']) return []
  const committed = documents.filter((document) => document.file === file)
  return committed.flatMap((document) => {
    const places = new Map(placesOf(document))
    return secretsInObjects(document).map(({ key }) => {
      const local = `move it to ${basename(localFileOf(document.file))}`
      const advice = key.startsWith('settings.') ? `${local} or replace it by a reference, {"env": "NAME"}` : local
      return `${key} (${places.get(key)}) looks like a secret in a file for version control: ${advice}`
    })
  })
}

/** @returns undefined when there is no such file */
function readDocument(file: string): ConfigDocument | undefined {
  try {
    const read = readJsonFile(file, '{} for the defaults')
    return read && { file, ...read }
  } catch (error) {
    throw new ConfigError(file, [reasonOf(error)], { cause: error })
  }
}

/** Returns each key of a file with its position: `svc.json, line 12`. */
function placesOf({ file, value, root, placeOf }: ConfigDocument): [string, string][] {
  return [...findEntries(value).found.values()].flatMap(leafEntriesOf).map(({ key, path }) => {
    const node = nodeAt(root, path)
    const line = node === undefined ? '' : `, line ${placeOf(node.start).line}`
    return [key, basename(file) + line]
  })
}

/** Returns a warning for each secret in a file that is unused because another was passed to the process. */
function hiddenSecrets(
  document: ConfigDocument,
  overrides: Readonly<Partial<Config>>,
  from: Readonly<Record<string, string | undefined>>,
): string[] {
  const { found } = findEntries(document.value)
  return placesOf(document).flatMap(([key, place]) => {
    const source = from[key]
    const value = found.get(key)?.value
    if (source === undefined || !isOverridden(key, value, overrides)) return []
    const what = key === 'shared.url' ? 'the password in shared.url' : key
    return [`${what} (${place}) is not used, since ${source} overrides it: change it there, and remove it here`]
  })
}

/** Whether the secret passed for a key replaces the value in the file with a different one. */
function isOverridden(key: string, value: unknown, overrides: Readonly<Record<string, unknown>>): boolean {
  if (key !== 'shared.url') return String(value) !== '' && JSON.stringify(value) !== JSON.stringify(overrides[key])
  const url = String(value)
  return URL.canParse(url) && new URL(url).password !== ''
}

/** Returns a warning when everybody on this machine can read secrets in the file. */
function exposedSecrets(document: ConfigDocument): string[] {
  const { file: path, value } = document
  const { found } = findEntries(value)
  const ofTable = configKeys.filter((key) => {
    const value = (found.get(key)?.value ?? '') as string | readonly string[] // It has been checked.
    return 'secret' in configTable[key] && value.length > 0
  })
  const secrets = [...ofTable, ...secretsInObjects(document).map(({ key }) => key)]
  if (secrets.length === 0 || !mayOthersRead(path)) return []
  return [`${path}: everybody on this machine can read ${secrets.join(' and ')}: remove that permission (chmod o-r)`]
}

/** Returns the texts in `settings` and `setup` that seem to be secrets. */
function secretsInObjects({ value }: ConfigDocument): Entry[] {
  const { found } = findEntries(value)
  const entries = (['settings', 'setup'] as const).flatMap((key) => found.get(key) ?? []).flatMap(leafEntriesOf)
  return entries.filter((entry) => typeof entry.value === 'string' && entry.value !== '' && isSecret(entry))
}

function checked(
  values: readonly unknown[],
  overrides: Partial<Config>,
  source: string,
  place: Omit<LoadedConfig, 'config' | 'settings' | 'warnings' | 'overridden' | 'sources'>,
): LoadedConfig {
  const { config, problems, unknown, replaced } = assembleConfig(values, overrides)
  const warnings = inOrder(unknown, place.documents).map((text) => `${source}: ${text}`)
  const open = config['paths.public']
  const publicFolder = open === '' ? undefined : resolve(place.folder, open)
  const settings = readSettings(config.settings, place.folder, publicFolder)
  const loaded = { config, settings, warnings, ...place, overridden: replaced, sources: {} }
  if (problems.length > 0) throw new ConfigError(source, inOrder(problems, place.documents), { warnings, rest: loaded })
  return loaded
}

/**
 * Returns the messages in file order, with their lines, and the name of the file if it is the local one. Messages that
 * are not about a file come last.
 */
function inOrder(findings: readonly Finding[], documents: readonly ConfigDocument[]): string[] {
  const placed = findings.map(({ text, path, layer = 0 }) => {
    const document = documents[layer]
    const node = path === undefined || document === undefined ? undefined : nodeAt(document.root, path)
    if (document === undefined || node === undefined) return { text, layer: Infinity, start: 0 }
    const name = document.file.endsWith('.local.json') ? `${basename(document.file)}, ` : ''
    return { text: `${text} (${name}line ${document.placeOf(node.start).line})`, layer, start: node.start }
  })
  return placed.sort((a, b) => a.layer - b.layer || a.start - b.start).map(({ text }) => text)
}
