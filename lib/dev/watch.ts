/**
 * What is watched in `dev`, and what a change of the configuration means. One process of a server watches: the primary
 * where there are several.
 */
import { basename, dirname, extname, resolve } from 'node:path'
import { readMiddlewareConfig } from '../application/middleware-config.ts'
import { isObject } from '../base/object.ts'
import { reasonOf } from '../base/reason.ts'
import { loadConfig, localFileOf, type LoadedConfig } from '../config/load.ts'
import { configTable, type Config, type ConfigKey } from '../config/table.ts'
import { publicFolder } from '../config/together.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { relativeTo } from '../storage/paths.ts'
import { FolderWatch } from './folder-watch.ts'

interface WatchOptions {
  readonly loaded: LoadedConfig
  /** The configuration file, which may be missing; undefined where there is to be none. */
  readonly configFile: string | undefined
  /** Of module `server`. */
  readonly log: ModuleLogger
  /** Called with the paths that have changed, but for the configuration. */
  readonly changed: (files: readonly string[]) => Promise<void>
}

const ofApplication = /^\.(?:html|json|[cm]?[jt]s)$/
/** Setup and `passwd` write these, and in `dev` nobody signs in. */
const credentials: ReadonlySet<string> = new Set<ConfigKey>(['admin.user', 'admin.password', 'admin.secret'])

/** Begins to watch. Resolves when every folder that is there is watched. */
export async function openWatch({ loaded, configFile, log, changed }: WatchOptions): Promise<FolderWatch> {
  const { config, folder } = loaded
  const inFolder = (path: string): string => resolve(folder, path)
  const [routes, middleware] = [inFolder(config['paths.routes']), inFolder(config['paths.middleware'])]
  const open = publicFolder(loaded)
  const applicationTrees = [routes, middleware, inFolder(config['paths.errors']), inFolder(config['paths.root'])]
  const kept = [config['paths.cache'], config['paths.log'], config['paths.temp'], ...sessionFolder(middleware)]
  const configFiles = configFile === undefined ? [] : [configFile, localFileOf(configFile)]
  const before = configFile === undefined ? undefined : valuesOf(configFile)
  const isIn = (trees: readonly string[], path: string): boolean =>
    trees.some((tree) => relativeTo(tree, path) !== undefined)

  async function onChange(paths: readonly string[]): Promise<void> {
    const files = paths.filter((path) => !configFiles.includes(path))
    if (configFile !== undefined && files.length < paths.length) {
      sayWhatNeedsRestart(configFile, before, basename(paths.find((path) => configFiles.includes(path)) as string), log)
    }
    if (files.length > 0) {
      await changed(files).catch((error: unknown) => log.error(`Cannot take up what was saved: ${reasonOf(error)}`, error))
    }
  }

  const watch = new FolderWatch({
    trees: [...(open === undefined ? [] : [open]), ...applicationTrees],
    flat: configFile === undefined ? [] : [dirname(configFile)],
    excluded: new Set(kept.map(inFolder)),
    isWanted: (path) =>
      configFiles.includes(path)
      || (open !== undefined && isIn([open], path))
      || (ofApplication.test(extname(path)) && isIn(applicationTrees, path)),
    onChange,
    warn: log.warn,
  })
  await watch.open()
  return watch
}

/** Where sessions are kept in files, relative or not; a configuration that is wrong is said elsewhere. */
function sessionFolder(middlewareFolder: string): string[] {
  try {
    const { session } = readMiddlewareConfig(middlewareFolder, []).setup
    return isObject(session) && typeof session['path'] === 'string' ? [session['path']] : []
  } catch {
    return []
  }
}

function valuesOf(file: string): Config | undefined {
  try {
    return loadConfig(file).config
  } catch {
    return undefined // It was replaced since the server read it; what it is then is said at the next change.
  }
}

/** @param name that of the file that was saved */
function sayWhatNeedsRestart(file: string, before: Config | undefined, name: string, log: ModuleLogger): void {
  try {
    const { config } = loadConfig(file)
    const keys = Object.keys(configTable) as ConfigKey[] // Object.keys forgets the names it returns.
    const others = keys.filter((key) => JSON.stringify(config[key]) !== JSON.stringify(before?.[key]))
    const needing = others.filter((key) => !credentials.has(key))
    const what = needing.length === 0 ? 'nothing in it needs a restart' : `restart the server for ${needing.join(', ')}`
    log.info(`${name} was saved: ${what}`)
  } catch (error) {
    log.error(`${name} was saved, and the server could not start with it: ${reasonOf(error)}`)
  }
}
