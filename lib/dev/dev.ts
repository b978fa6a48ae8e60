/**
 * What a server does in `dev` alone: it takes up what was saved, refreshes open pages, and prints a line for each
 * request. None of it is loaded in `prod`.
 *
 * A change goes this way: the process that watches (`watch.ts`) sends the command `files.changed`. The process that
 * serves and gets it decides what that means, reloads with `routes.reload` where it must, which all processes do, and
 * tells the pages of all of them with `pages.tell`.
 */
import { dirname, join, resolve } from 'node:path'
import type { ApplicationParts } from '../composition/build.ts'
import { describeAll, ReloadError, type Command, type Control } from '../control/commands.ts'
import { createDevErrorPage } from '../application/dev-error-page.ts'
import type { ServingParts } from '../composition/serving.ts'
import type { LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import type { PageForError } from '../http/error-reply.ts'
import { createProcessConsole } from '../log/console.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { isAtOrIn } from '../files/paths.ts'
import type { FolderWatch } from './folder-watch.ts'
import { DevPages } from './pages.ts'
import { createRequestLines } from './request-lines.ts'
import { openWatch } from './watch.ts'

interface DevOptions {
  readonly loaded: LoadedConfig
  /** The configuration file; undefined where there is none. */
  readonly configFile: string | undefined
  readonly built: Pick<ApplicationParts, 'application' | 'modules'>
  /** Of module `server`. */
  readonly log: ModuleLogger
  /** Whether what is saved is taken up, by this process or another one. */
  readonly watches: boolean
}

const isModule = /\.[cm]?[jt]s$/

/** The parts of `dev` of one process. Nothing is watched before `watch()`. */
export class Dev {
  readonly #options: DevOptions
  readonly #pages: DevPages | undefined
  #watch: FolderWatch | undefined
  /** Why the last reload was refused. */
  #refused: readonly string[] = []

  constructor(options: DevOptions) {
    this.#options = options
    this.#pages = options.watches ? new DevPages(options.loaded.config['server.allowed_hosts']) : undefined
  }

  /** Adds what `dev` does to the parts that serve requests. */
  wrap(parts: ServingParts): ServingParts {
    const printed = this.#options.loaded.config['log.console']
    const colours = process.stdout.isTTY && process.stdout.hasColors()
    const accessLog = printed ? createRequestLines(parts.accessLog, createProcessConsole(), colours) : parts.accessLog
    const withPage = { ...parts, accessLog, pageForError: this.#pageForError(parts) }
    return { ...withPage, ...this.#pages?.wrap(withPage) }
  }

  /** Begins to watch, where that is asked for. Resolves when every folder is watched. */
  async watch(control: Control): Promise<void> {
    const changed = (files: readonly string[]): Promise<void> => control.apply({ type: 'files.changed', files })
    if (this.#options.watches) this.#watch = await openWatch({ ...this.#options, changed })
  }

  /** Takes up files that have changed. */
  async changed(files: readonly string[], control: Control): Promise<void> {
    const { loaded, log } = this.#options
    const reloads = files.some((file) => this.#isUsed(file) || (this.#isTroubled && isModule.test(file)))
    if (reloads) {
      try {
        await control.apply({ type: 'routes.reload', keepsAdded: true })
        this.#refused = []
      } catch (error) {
        if (!(error instanceof ReloadError)) throw error
        this.#refused = describeAll(error.problems)
        log.error(error.message)
      }
    }
    const open = publicFolder(loaded)
    const isSeen = (file: string): boolean => file.endsWith('.html') || (open !== undefined && isAtOrIn(open, file))
    const changed = (reloads && this.#refused.length === 0) || files.some(isSeen)
    if (reloads || changed) await control.apply({ type: 'pages.tell', changed, problems: this.#refused })
  }

  /** Tells the open pages of this process. */
  tell(news: Command<'pages.tell'>): void {
    this.#pages?.tell(news)
  }

  stop(): void {
    this.#watch?.close()
    this.#pages?.stop()
  }

  /** The page of a 500 shows its place to those who may see it, where the application has no page of its own. */
  #pageForError({ pageForError, showsDetails }: ServingParts): PageForError {
    const { folder, config } = this.#options.loaded
    const devPage = createDevErrorPage(resolve(folder, config['paths.root']))
    return (...error) => pageForError?.(...error) ?? (showsDetails(error[0]) ? devPage(...error) : undefined)
  }

  /** Whether the route files, the settings of the middleware or a module in use are this file, or in this folder. */
  #isUsed(file: string): boolean {
    const { built, loaded } = this.#options
    const { 'paths.routes': routes, 'paths.middleware': middleware } = loaded.config
    const routesFolder = resolve(loaded.folder, routes)
    const settings = join(resolve(loaded.folder, middleware), 'config.json')
    const isRouteFile = file.endsWith('.json') && dirname(file) === routesFolder
    return isRouteFile || isAtOrIn(file, routesFolder) || isAtOrIn(file, settings) || built.modules.uses(file)
  }

  /** Whether a reload was refused or something is missing: a new file may be the module that was not there. */
  get #isTroubled(): boolean {
    return this.#refused.length > 0 || this.#options.built.application.warnings.length > 0
  }
}
