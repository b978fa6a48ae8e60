/**
 * What a server does in `dev` alone: it takes up what was saved, refreshes open pages, and prints a line for each
 * request. None of it is loaded in `prod`.
 *
 * A change goes this way: the process that watches (`watch.ts`) sends the command `files.changed`. The process that
 * serves and gets it decides what that means, reloads with `routes.reload` where it must, which all processes do, and
 * tells the pages of all of them with `pages.tell`.
 */
import { dirname, join, resolve } from 'node:path'
import type { ApplicationParts } from '../application/build.ts'
import { describeAll, ReloadError, type Control } from '../application/commands.ts'
import type { ServingParts } from '../application/serving.ts'
import type { LoadedConfig } from '../config/load.ts'
import { publicFolder } from '../config/together.ts'
import { createProcessConsole } from '../log/console.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { isAtOrIn } from '../storage/paths.ts'
import type { FolderWatch } from './folder-watch.ts'
import { DevPages, type PageNews } from './pages.ts'
import { createRequestLines, type RequestLines } from './request-lines.ts'
import { openWatch } from './watch.ts'

interface DevOptions {
  readonly loaded: LoadedConfig
  readonly configFile: string | undefined
  readonly built: Pick<ApplicationParts, 'application' | 'modules'>
  readonly log: (module: string) => ModuleLogger
  /** Whether what is saved is taken up, by this process or another one, so that pages refresh. */
  readonly watches: boolean
  /** Whether this process prints on a console. */
  readonly console: boolean
}

const isModule = /\.[cm]?[jt]s$/

/** The parts of `dev` of one server. Nothing is watched before `watch()`. */
export class Dev {
  readonly #options: DevOptions
  readonly #pages: DevPages | undefined
  #lines: RequestLines | undefined
  #watch: FolderWatch | undefined
  /** Why the last reload was refused. */
  #refused: readonly string[] = []
  #isStopped = false

  constructor(options: DevOptions) {
    this.#options = options
    this.#pages = options.watches ? new DevPages(options.loaded.config['server.allowed_hosts']) : undefined
  }

  /** Adds what `dev` does to the parts that serve requests. */
  wrap(parts: ServingParts): ServingParts {
    const { accessLog, ContextClass, pageForError } = parts
    const pages = this.#pages
    if (this.#options.console) {
      const colours = process.stdout.isTTY && process.stdout.hasColors()
      this.#lines = createRequestLines(accessLog, createProcessConsole(), colours)
    }
    return {
      ...parts,
      accessLog: this.#lines ?? accessLog,
      ...(pages !== undefined && {
        ContextClass: pages.contextClass(ContextClass),
        pageForError: pages.pageForError(pageForError),
        beside: pages.beside(ContextClass),
      }),
    }
  }

  /** Begins to watch, where that is asked for. Resolves when every folder is watched. */
  async watch(control: Control): Promise<void> {
    const { loaded, configFile, log, watches } = this.#options
    if (!watches) return
    const changed = (files: readonly string[]) => control.apply({ type: 'files.changed', files })
    this.#watch = await openWatch({ loaded, configFile, log: log('server'), changed })
    if (this.#isStopped) this.#watch.close()
  }

  /** Takes up files that have changed. */
  async changed(files: readonly string[], control: Control): Promise<void> {
    const open = publicFolder(this.#options.loaded)
    const needsReload = files.some((file) => this.#isUsed(file) || (this.#isTroubled && isModule.test(file)))
    if (needsReload) {
      try {
        await control.apply({ type: 'routes.reload', keepsAdded: true })
        this.#refused = []
      } catch (error) {
        if (!(error instanceof ReloadError)) throw error
        this.#refused = describeAll(error.problems)
        this.#options.log('server').error(error.message)
      }
    }
    const isSeen = (file: string): boolean => file.endsWith('.html') || (open !== undefined && isAtOrIn(open, file))
    const changed = (needsReload && this.#refused.length === 0) || files.some(isSeen)
    if (needsReload || changed) await control.apply({ type: 'pages.tell', changed, problems: this.#refused })
  }

  /** Tells the open pages of this process. */
  tell(news: PageNews): void {
    this.#pages?.tell(news)
  }

  /** Call it when a stop begins. */
  stop(): void {
    this.#isStopped = true
    this.#watch?.close()
    this.#pages?.stop()
  }

  /** Call it when no request runs any more. */
  end(): void {
    this.#lines?.flush()
  }

  /** Whether the route files, the middleware or a module in use are this file, or in this folder. */
  #isUsed(file: string): boolean {
    const { built, loaded } = this.#options
    const { 'paths.routes': routes, 'paths.middleware': middleware } = loaded.config
    const settings = join(resolve(loaded.folder, middleware), 'config.json')
    const routesFolder = resolve(loaded.folder, routes)
    const isRouteFile = file.endsWith('.json') && dirname(file) === routesFolder
    return isRouteFile || isAtOrIn(file, routesFolder) || isAtOrIn(file, settings) || built.modules.uses(file)
  }

  /** Whether something that is missing may have come: a module that is not in use yet. */
  get #isTroubled(): boolean {
    return this.#refused.length > 0 || this.#options.built.application.warnings.length > 0
  }
}

/** Makes the parts of `dev`. */
export function openDev(options: DevOptions): Dev {
  return new Dev(options)
}
