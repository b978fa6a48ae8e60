/**
 * The folders that a server writes to, and whether it can: for `check`, for a log line at the start, and for warnings.
 *
 * Surprise: the folder of the configuration counts only until the administrator and the secret are saved. It is valid
 * for the configuration to belong to another user.
 */
import { dirname, resolve } from 'node:path'
import { isObject } from '../base/object.ts'
import { fileToWrite, type LoadedConfig } from '../config/load.ts'
import { problemOfFolder, type FolderProblem } from '../files/writable.ts'
import { middlewareConfigOf } from './application-settings.ts'

/** A folder that the server writes to. */
export interface WrittenFolder {
  /** The key that names it, or a description. */
  readonly what: string
  readonly path: string
  /** The only file written in it; undefined: any. */
  readonly file?: string
  /** What fails while it cannot be written. */
  readonly effect: string
}

/** The credentials of the panel. An empty one has yet to be saved. */
interface Credentials {
  readonly user: string
  readonly password: string
  readonly secret: string
}

const effects = {
  'paths.log': 'log lines are lost',
  'paths.cache': 'views are compiled again at each start, and events end with the process',
  'paths.temp': 'uploads above 64 KiB are 500',
} as const

/** Returns the folders named by the configuration. */
export function foldersOf({ config, folder }: LoadedConfig): WrittenFolder[] {
  return (['paths.log', 'paths.cache', 'paths.temp'] as const).map((key) => ({
    what: key,
    path: resolve(folder, config[key]),
    effect: effects[key],
  }))
}

/** Returns the folder of the database, which is written only if jobs or sessions are in it. */
export function dataFolder({ config, folder }: LoadedConfig): WrittenFolder {
  const effect = 'jobs are not enqueued, and requests that keep a session in the database are 500'
  return { what: 'paths.data', path: resolve(folder, config['paths.data']), effect }
}

/** Returns the folder of the session store `file`. */
export function sessionFolder(path: string): WrittenFolder {
  return { what: 'setup.session.path', path, effect: 'requests that keep a session are 500' }
}

/**
 * Returns the folder of the file in which setup and the first sign-in save, while there is something to save.
 * @param file the configuration file; undefined: nothing is saved
 */
export function configurationFolder(
  { config }: LoadedConfig,
  file: string | undefined,
  { user, password, secret }: Credentials,
): WrittenFolder[] {
  const isSaved = user !== '' && password !== '' && secret !== ''
  if (file === undefined || isSaved || config['app.env'] !== 'prod' || !config['admin.enabled']) return []
  const target = fileToWrite(file, config)
  const effect = `${target} cannot be saved, so setup and the first sign-in are 500: run \`svc passwd\``
  return [{ what: 'the configuration', path: dirname(target), file: target, effect }]
}

/**
 * Returns the folder of the session store `file` in the middleware configuration, if any.
 * @throws MiddlewareError as `readMiddlewareConfig` does
 */
export function sessionPathOf(loaded: LoadedConfig): string | undefined {
  const session = settingsOf(loaded, 'session')
  if (session['store'] !== 'file' || typeof session['path'] !== 'string') return undefined
  return resolve(loaded.folder, session['path'])
}

/**
 * Returns the unchecked settings of a group of built-in middleware.
 * @throws MiddlewareError as `readMiddlewareConfig` does
 */
export function settingsOf(loaded: LoadedConfig, group: string): Readonly<Record<string, unknown>> {
  const settings = middlewareConfigOf(loaded, []).setup[group]
  return isObject(settings) ? settings : {}
}

/** Checks folders. Resolves with a problem for each that cannot be written. */
export async function unwritable(
  folders: readonly WrittenFolder[],
): Promise<readonly (FolderProblem & { readonly line: string })[]> {
  const found = await Promise.all(folders.map(async ({ what, path, file, effect }) => {
    const problem = await problemOfFolder(path, file)
    return problem && { ...problem, line: `${what}: this user cannot write to ${path} (${problem.reason}): ${effect}` }
  }))
  return found.filter((problem) => problem !== undefined)
}

interface FolderWatchOptions {
  /** Returns the folders to check now. */
  readonly folders: () => readonly WrittenFolder[]
  readonly log: { readonly warn: (message: string) => void; readonly info: (message: string) => void }
}

const everyMs = 10_000

/** Checks the folders of a running server periodically, and logs changes. */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  #lines: readonly string[] = []
  #isChecking = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: FolderWatchOptions) {
    this.#options = options
  }

  /** Checks now, and every 10 seconds until `close()`. Resolves after the first check. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.check(), everyMs).unref()
    await this.check()
  }

  /** Checks now. No-op while a check runs, which takes long on a hanging file system. */
  async check(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    try {
      const lines = (await unwritable(this.#options.folders())).map(({ line }) => line)
      const { warn, info } = this.#options.log
      for (const line of lines) if (!this.#lines.includes(line)) warn(line)
      for (const line of this.#lines) if (!lines.includes(line)) info(`resolved: ${line}`)
      this.#lines = lines
    } finally {
      this.#isChecking = false
    }
  }

  /** Returns a line for each folder that cannot be written. */
  warnings(): readonly string[] {
    return this.#lines
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
