/**
 * Finds, reads and checks the configuration: `svc.json` and, merged over it, `svc.local.json` beside it, for what one
 * machine has of its own.
 *
 * A missing file is no error: the defaults are used, a warning says so, and nothing is written. All problems of a file
 * are reported at once, in one ConfigError.
 */
import { existsSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { nodeAt } from '../json/json-map.ts'
import { readJsonFile, type JsonFile } from '../json/read-json.ts'
import { mayOthersRead } from '../files/paths.ts'
import { assembleConfig, findEntries, type Finding } from './assemble.ts'
import { configKeys, configTable } from './table.ts'
import type { Config, ConfigKey } from './table.ts'

/** A configuration file with its absolute path. */
interface ConfigDocument extends JsonFile {
  readonly file: string
}

/** A configuration that has been checked. */
export interface LoadedConfig {
  readonly config: Config
  /** The absolute path of the file that was read; undefined when there was none. */
  readonly file: string | undefined
  /** The absolute path of the folder that relative paths are relative to: that of the file. */
  readonly folder: string
  /** The absolute path of the local file; undefined when there was none. */
  readonly localFile?: string | undefined
  /** The keys of the local file that are in the other one too. */
  readonly overridden?: readonly string[]
  /** Unknown keys, each with the nearest known one, and a missing file. */
  readonly warnings: readonly string[]
  /** The files that were read, the local one last. */
  readonly documents: readonly ConfigDocument[]
  /** Where each value comes from, such as `svc.json, line 12`; a key that is missing has its default. */
  readonly sources: Readonly<Record<string, string>>
}

/** The configuration cannot be used. The message contains all problems; `problems` has them one by one. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]
  /** Unknown keys, as in LoadedConfig. */
  readonly warnings: readonly string[]
  /** The configuration with the default for each wrong value, for further checks; undefined when nothing was read. */
  readonly rest: LoadedConfig | undefined

  /**
   * @param source what was loaded: a file, or a phrase for it
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

/** A problem of a value of a configuration that has been read. */
export interface ValueProblem {
  readonly key: ConfigKey
  readonly text: string
}

/** How messages name a configuration that was given as a value. */
const givenAsValue = 'the configuration'

/** Makes the error for problems of values, at least one, each with its line in the file. */
export function errorOfValues(
  { file, documents }: LoadedConfig,
  problems: readonly ValueProblem[],
  cause?: unknown,
): ConfigError {
  const entries = documents.map(({ value }) => findEntries(value).found)
  const findings = problems.map(({ key, text }): Finding => {
    const layer = entries.findLastIndex((found) => found.has(key))
    return { text, path: entries[layer]?.get(key)?.path, layer }
  })
  return new ConfigError(file ?? givenAsValue, inOrder(findings, documents), { cause })
}

/** The configuration file, and why it is that one. */
interface FoundConfigFile {
  /** The absolute path. */
  readonly file: string
  /** The option or variable that names it, so that it must exist; undefined when none does. */
  readonly namedBy: '--config' | '$SVC_CONFIG' | undefined
  /** Whether it is the one that comes with the server. */
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

/** The local file beside a configuration file: `svc.local.json` beside `svc.json`. It need not exist. */
export function localFileOf(file: string): string {
  return `${file.replace(/\.json$/, '')}.local.json`
}

/** The file that changes are written to: the local one when it exists or `config.local` asks for it. */
export function fileToWrite(file: string, config: Config): string {
  const local = localFileOf(file)
  return config['config.local'] || existsSync(local) ? local : file
}

/**
 * Reads a configuration file and the local one beside it. It never writes.
 * @param overrides values that replace those of the files: `--host`, `--port` and `--env` of the command line
 * @param from where a secret comes from that was passed to the process, by its key: an override, or the password of
 *   `shared.url`. The other overrides are options of the command line
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
  const missing = main === undefined ? [`${path} is not there: the defaults are used`] : []
  const sources = Object.fromEntries([
    ...documents.flatMap(placesOf),
    ...Object.keys(overrides).map((key) => [key, from[key] ?? 'an option of the command line']),
  ])
  const ofSecrets = documents.flatMap((document) => [
    ...hiddenSecrets(document, overrides, from),
    ...exposedSecrets(document),
  ])
  return { ...loaded, sources, warnings: [...missing, ...loaded.warnings, ...ofSecrets] }
}

/**
 * Checks a configuration that is a value, nested or dotted, as `createApp({config})` takes it. A member that is
 * undefined counts as absent.
 * @param folder relative paths are relative to it
 * @throws ConfigError
 */
export function parseConfig(value: unknown, folder: string): LoadedConfig {
  const loaded = checked([value], {}, givenAsValue, { file: undefined, folder: resolve(folder), documents: [] })
  const sources = Object.fromEntries([...findEntries(value).found.keys()].map((key) => [key, 'createApp']))
  return { ...loaded, sources }
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

/** Where the keys of a file stand: `svc.json, line 12`. */
function placesOf({ file, value, root, placeOf }: ConfigDocument): [string, string][] {
  return [...findEntries(value).found.values()].map(({ key, path }) => {
    const node = nodeAt(root, path)
    const line = node === undefined ? '' : `, line ${placeOf(node.start).line}`
    return [key, basename(file) + line]
  })
}

/** A warning for each secret in a file that has no effect, because another one was passed to the process. */
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
    return [`${what} (${place}) is not used, since ${source} comes before it: change it there, and remove it here`]
  })
}

/** Whether a value of a file is one that the passed secret of its key replaces by another. */
function isOverridden(key: string, value: unknown, overrides: Readonly<Record<string, unknown>>): boolean {
  if (key !== 'shared.url') return String(value) !== '' && JSON.stringify(value) !== JSON.stringify(overrides[key])
  const url = String(value)
  return URL.canParse(url) && new URL(url).password !== ''
}

/** A warning when everybody on this machine can read secrets in the file. */
function exposedSecrets({ file: path, value }: ConfigDocument): string[] {
  const { found } = findEntries(value)
  const secrets = configKeys.filter((key) => {
    const given = (found.get(key)?.value ?? '') as string | readonly string[] // It has been checked.
    return 'secret' in configTable[key] && given.length > 0
  })
  if (secrets.length === 0 || !mayOthersRead(path)) return []
  return [`${path}: everybody on this machine can read ${secrets.join(' and ')}: remove that permission (chmod o-r)`]
}

function checked(
  values: readonly unknown[],
  overrides: Partial<Config>,
  source: string,
  place: Omit<LoadedConfig, 'config' | 'warnings' | 'overridden' | 'sources'>,
): LoadedConfig {
  const { config, problems, unknown, replaced } = assembleConfig(values, overrides)
  const warnings = inOrder(unknown, place.documents).map((text) => `${source}: ${text}`)
  const loaded = { config, warnings, ...place, overridden: replaced, sources: {} }
  if (problems.length > 0) throw new ConfigError(source, inOrder(problems, place.documents), { warnings, rest: loaded })
  return loaded
}

/**
 * The messages in the order of the files, with their lines, and the name of the file where it is the local one.
 * Messages that are not about a file come last.
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
