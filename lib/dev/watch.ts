/**
 * Selects what to watch in `dev`, and reports which changes of the configuration need a restart. One process of a
 * server watches: the primary if there are several.
 */
import { existsSync } from 'node:fs'
import { basename, dirname, extname, resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { assembleConfig } from '../config/assemble.ts'
import { loadConfig, localFileOf, type LoadedConfig } from '../config/load.ts'
import { configTable, type Config, type ConfigKey } from '../config/table.ts'
import { publicFolder } from '../config/together.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { relativeTo } from '../files/paths.ts'
import { FolderWatch } from './folder-watch.ts'

interface WatchOptions {
  readonly loaded: LoadedConfig
  /** The configuration file, which need not exist; undefined if there is none. */
  readonly configFile: string | undefined
  /** The log of module `server`. */
  readonly log: ModuleLogger
  /** Called with the changed paths, except the configuration; not again before it has resolved. */
  readonly changed: (paths: readonly string[]) => Promise<void>
}

type FolderName = 'root' | 'routes' | 'jobs' | 'middleware' | 'errors' | 'cache' | 'log' | 'temp' | 'data'

/** Views, route files, settings, modules, static files. The application itself may write others. */
const wanted = /^\.(?:html|json|css|svg|[cm]?[jt]s)$/
/** Setup and `passwd` write these, and `dev` has no sign-in. */
const credentials: ReadonlySet<string> = new Set<ConfigKey>([
  'admin.user', 'admin.password', 'admin.secret', 'admin.totp', 'admin.recovery_codes',
])

const nothing = 'nothing in it needs a restart'

/** Starts to watch. Resolves when every existing folder is watched. */
export async function openWatch({ loaded, configFile, log, changed }: WatchOptions): Promise<FolderWatch> {
  const { config, folder } = loaded
  const folders = (...names: FolderName[]): string[] => names.map((name) => resolve(folder, config[`paths.${name}`]))
  const trees = [publicFolder(loaded) ?? [], folders('routes', 'jobs', 'middleware', 'errors', 'root')].flat()
  const configFiles = configFile === undefined ? [] : [configFile, localFileOf(configFile)]
  const before = assembleConfig(loaded.documents.map(({ value }) => value)).config
  const isInTree = (path: string): boolean => trees.some((tree) => relativeTo(tree, path) !== undefined)
  const watch = new FolderWatch({
    trees,
    flat: configFiles.slice(0, 1).map(dirname),
    excluded: new Set(folders('cache', 'log', 'temp', 'data')), // Sessions have names that are not wanted.
    isWanted: (path) => configFiles.includes(path) || (wanted.test(extname(path)) && isInTree(path)),
    onChange: async (paths) => {
      const saved = paths.find((path) => configFiles.includes(path)) ?? ''
      const change = existsSync(saved) ? 'saved' : 'removed'
      if (saved !== '') log.info(`${basename(saved)} was ${change}: ${whatNeedsRestart(configFiles[0] ?? '', before)}`)
      const others = paths.filter((path) => !configFiles.includes(path))
      if (others.length === 0) return
      await changed(others).catch((thrown: unknown) => log.error('Cannot apply the saved files', { thrown }))
    },
    warn: log.warn,
  })
  await watch.open()
  const missed = loaded.file === undefined ? nothing : whatNeedsRestart(loaded.file, before)
  if (!missed.startsWith(nothing)) log.info(`${basename(loaded.file ?? '')} was saved during the start: ${missed}`)
  return watch
}

function whatNeedsRestart(file: string, before: Config): string {
  try {
    const { config, warnings } = loadConfig(file)
    const keys = Object.keys(configTable) as ConfigKey[] // Object.keys forgets the names it returns.
    const others = keys.filter((key) => JSON.stringify(config[key]) !== JSON.stringify(before[key]))
    const needing = others.filter((key) => !credentials.has(key))
    const advice = `restart the server for ${needing.join(', ')}`
    return [needing.length === 0 ? nothing : advice, ...warnings].join('; ')
  } catch (error) {
    return `a restart would fail: ${reasonOf(error)}`
  }
}
