/**
 * The features of `dev`: applies saved files, refreshes open pages, and prints a line for each request. None of it is
 * loaded in `prod`.
 *
 * The path of a change: the process that watches (`watch.ts`) sends the command `files.changed`. The serving process
 * that receives it reloads with `routes.reload` if necessary, which all processes do, and refreshes the pages of all of
 * them with `pages.refresh`.
 */
import { dirname, join, resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import type { ApplicationParts } from '../composition/application-parts.ts'
import { describeAll, ReloadError, type Command, type Control } from '../control/commands.ts'
import { isCurrent, routeTypesOf, typesName, writeRouteTypes } from '../describe/route-types.ts'
import { createDevErrorPage } from './error-page.ts'
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

export { openWatch }

interface DevOptions {
  readonly loaded: LoadedConfig
  /** The configuration file, if any. */
  readonly configFile: string | undefined
  readonly built: Pick<ApplicationParts, 'application' | 'modules'>
  /** The log of module `server`. */
  readonly log: ModuleLogger
  /** Whether saved files are applied, by this process or another one. */
  readonly watches: boolean
}

const isModule = /\.[cm]?[jt]s$/

/** The `dev` features of one process. Nothing is watched before `watch()`. */
export class Dev {
  readonly #options: DevOptions
  readonly #pages: DevPages | undefined
  #watch: FolderWatch | undefined
  /** Why the last reload was refused. */
  #refusal: readonly string[] = []

  constructor(options: DevOptions) {
    this.#options = options
    this.#pages = options.watches ? new DevPages(options.loaded.config['server.allowed_hosts']) : undefined
  }

  /** Adds the `dev` features to the parts that serve requests. */
  wrap(parts: ServingParts): ServingParts {
    const prints = this.#options.loaded.config['log.console']
    const colours = process.stdout.isTTY && process.stdout.hasColors()
    const accessLog = prints ? createRequestLines(parts.accessLog, createProcessConsole(), colours) : parts.accessLog
    const withPage = { ...parts, accessLog, pageForError: this.#pageForError(parts) }
    return { ...withPage, ...this.#pages?.wrap(withPage) }
  }

  /** Starts to watch, if enabled. Resolves when every folder is watched. */
  async watch(control: Control): Promise<void> {
    const changed = (files: readonly string[]): Promise<void> => control.apply({ type: 'files.changed', files })
    if (!this.#options.watches) return
    this.#updateTypes()
    this.#watch = await openWatch({ ...this.#options, changed })
  }

  /** Applies changed files. */
  async changed(files: readonly string[], control: Control): Promise<void> {
    const { loaded, log } = this.#options
    const reloads = files.some((file) => this.#isUsed(file) || (this.#hasProblems && isModule.test(file)))
    if (reloads) {
      try {
        await control.apply({ type: 'routes.reload', keepsAdded: true })
        this.#refusal = []
        this.#updateTypes()
      } catch (error) {
        if (!(error instanceof ReloadError)) throw error
        this.#refusal = describeAll(error.problems)
        log.error(error.message)
      }
    }
    const open = publicFolder(loaded)
    const isVisible = (file: string): boolean => file.endsWith('.html') || (open !== undefined && isAtOrIn(open, file))
    const visible = files.filter(isVisible)
    const isApplied = reloads && this.#refusal.length === 0
    const isOther = isApplied || visible.some((file) => !file.endsWith('.css'))
    const change = isOther ? 'page' : visible.length > 0 ? 'styles' : 'none'
    if (reloads || change !== 'none') await control.apply({ type: 'pages.refresh', change, problems: this.#refusal })
  }

  /** Refreshes the open pages of this process. */
  refresh(news: Command<'pages.refresh'>): void {
    this.#pages?.refresh(news)
  }

  stop(): void {
    this.#watch?.close()
    this.#pages?.stop()
  }

  /** Shows the source of a 500 to those who may see it, unless the application has an error page. */
  #pageForError({ pageForError, showsDetails }: ServingParts): PageForError {
    const { folder, config } = this.#options.loaded
    const devPage = createDevErrorPage(resolve(folder, config['paths.root']))
    return (...error) => pageForError?.(...error) ?? (showsDetails(error[0]) ? devPage(...error) : undefined)
  }

  /** Writes the types of the routes again if `svc types` has written them and they are old. */
  #updateTypes(): void {
    const { loaded, log } = this.#options
    try {
      const types = routeTypesOf(loaded)
      if (types.problems.length > 0 || isCurrent(types) !== false) return
      writeRouteTypes(types)
      log.info(`${typesName} has the types of the changed routes`)
    } catch (error) {
      log.warn(`${typesName} cannot be updated: ${reasonOf(error)}`)
    }
  }

  /** Whether the path is, or contains, a route file, a job file, the middleware configuration or a module in use. */
  #isUsed(file: string): boolean {
    const { built, loaded } = this.#options
    const { 'paths.routes': routes, 'paths.jobs': jobs, 'paths.middleware': middleware } = loaded.config
    const folders = [resolve(loaded.folder, routes), resolve(loaded.folder, jobs)]
    const settings = join(resolve(loaded.folder, middleware), 'config.json')
    const isRecordFile = file.endsWith('.json') && folders.includes(dirname(file))
    const containsAny = [...folders, settings].some((path) => isAtOrIn(file, path))
    return isRecordFile || containsAny || built.modules.uses(file)
  }

  /** Whether a reload was refused or something is missing: a new file may be the missing module. */
  get #hasProblems(): boolean {
    return this.#refusal.length > 0 || this.#options.built.application.warnings.length > 0
  }
}
