/**
 * The folders that a server writes: that it can, for `check`, for a line at the start, and as warnings while it cannot.
 *
 * Surprise: the folder of the configuration counts only until the administrator and the secret are saved. Installations
 * whose configuration belongs to another user are right.
 */
import { dirname, resolve } from 'node:path'
import { isObject } from '../base/object.ts'
import { fileToWrite, type LoadedConfig } from '../config/load.ts'
import { problemOfFolder, type FolderProblem } from '../files/writable.ts'
import { readMiddlewareConfig } from '../modules/middleware-config.ts'

/** A folder that the server writes. */
export interface WrittenFolder {
  /** The key that names it, or what it is. */
  readonly what: string
  readonly path: string
  /** The only file in it that is written; many are unless given. */
  readonly file?: string
  /** What fails while it cannot be written. */
  readonly effect: string
}

/** The credentials of the panel, of which an empty one has to be saved. */
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

/** The folders of the configuration. */
export function foldersOf({ config, folder }: LoadedConfig): WrittenFolder[] {
  return (['paths.log', 'paths.cache', 'paths.temp'] as const).map((key) => ({
    what: key,
    path: resolve(folder, config[key]),
    effect: effects[key],
  }))
}

/** The folder of the session store `file`. */
export function sessionFolder(path: string): WrittenFolder {
  return { what: 'setup.session.path', path, effect: 'requests that keep a session are 500' }
}

/**
 * The folder of the file that setup and the first sign-in save to, while there is something to save.
 * @param file the configuration file; undefined: nothing is saved
 */
export function configurationFolder(
  { config }: LoadedConfig,
  file: string | undefined,
  { user, password, secret }: Credentials,
): WrittenFolder[] {
  const isSaved = user !== '' && password !== '' && secret !== ''
  if (file === undefined || isSaved || config['app.env'] !== 'prod' || !config['admin.enabled']) return []
  const written = fileToWrite(file, config)
  const effect = `${written} cannot be saved, so setup and the first sign-in are 500: run \`svc passwd\``
  return [{ what: 'the configuration', path: dirname(written), file: written, effect }]
}

/**
 * The folder of the session store `file` by the middleware's configuration; undefined where there is none.
 * @throws MiddlewareError as `readMiddlewareConfig` does
 */
export function sessionPathOf(loaded: LoadedConfig): string | undefined {
  const session = settingsOf(loaded, 'session')
  if (session['store'] !== 'file' || typeof session['path'] !== 'string') return undefined
  return resolve(loaded.folder, session['path'])
}

/**
 * The settings of a built-in middleware as its configuration has them, unchecked.
 * @throws MiddlewareError as `readMiddlewareConfig` does
 */
export function settingsOf({ config, folder }: LoadedConfig, group: string): Readonly<Record<string, unknown>> {
  const settings = readMiddlewareConfig(resolve(folder, config['paths.middleware']), []).setup[group]
  return isObject(settings) ? settings : {}
}

/** Checks folders. Resolves with a line for each that cannot be written. */
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
  /** The folders of this moment. */
  readonly folders: () => readonly WrittenFolder[]
  readonly log: { readonly warn: (message: string) => void; readonly info: (message: string) => void }
}

const everyMs = 10_000

/** Checks the folders of a running server again and again, and logs what has changed. */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  #lines: readonly string[] = []
  #isLooking = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: FolderWatchOptions) {
    this.#options = options
  }

  /** Checks now, and each 10 seconds until `close()`. Resolves after the first time. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.look(), everyMs).unref()
    await this.look()
  }

  /** Checks now; does nothing while a check runs, which takes long on a file system that hangs. */
  async look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const lines = (await unwritable(this.#options.folders())).map(({ line }) => line)
      const { warn, info } = this.#options.log
      for (const line of lines) if (!this.#lines.includes(line)) warn(line)
      for (const line of this.#lines) if (!lines.includes(line)) info(`resolved: ${line}`)
      this.#lines = lines
    } finally {
      this.#isLooking = false
    }
  }

  /** A line for each folder that cannot be written. */
  warnings(): readonly string[] {
    return this.#lines
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
