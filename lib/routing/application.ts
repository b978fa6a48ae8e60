/**
 * The application of a server: its route files with their actions and middleware, loaded at the start and renewed while
 * it runs.
 *
 * Surprise: a start and a reload judge differently. At the start something is better than nothing: a wrong record is left
 * out and said. At a reload the old table is better: one thing wrong, and nothing changes.
 */
import { ReloadError, describe, type ReloadProblem, type ReloadResult } from '../control/commands.ts'
import { MiddlewareError, type MiddlewareConfig } from '../middleware/config-file.ts'
import type { MiddlewareHost, MiddlewareSet } from '../middleware/host.ts'
import type { Chain } from '../middleware/compose.ts'
import type { Modules } from './modules.ts'
import type { Registry, Route } from './registry.ts'
import { readRouteFiles } from './route-files.ts'
import type { RouteBuilder } from './route-builder.ts'

export interface ApplicationOptions<SetupApp> {
  /** `paths.root`, absolute. */
  readonly root: string
  /** `paths.routes`, absolute. */
  readonly routesFolder: string
  readonly registry: Registry<Chain>
  readonly modules: Modules
  readonly builder: RouteBuilder
  readonly middleware: MiddlewareHost<SetupApp>
  /** Reads the middleware configuration. Throws MiddlewareError. */
  readonly readMiddlewareConfig: () => MiddlewareConfig
}

/** What the files hold, good and bad side by side. */
export interface Inspection {
  readonly routes: readonly Route<Chain>[]
  /** Files and records that cannot be used. */
  readonly problems: readonly ReloadProblem[]
  /** Modules that do not load. Their routes answer 500. */
  readonly broken: readonly ReloadProblem[]
  /** Actions that are not there yet, or lack their export; fields that nobody knows. */
  readonly warnings: readonly ReloadProblem[]
}

/** The application of one server. */
export class Application<SetupApp> {
  readonly #options: ApplicationOptions<SetupApp>

  constructor(options: ApplicationOptions<SetupApp>) {
    this.#options = options
  }

  /**
   * Loads everything for the first time and registers what is good.
   * @returns what was left out, and what does not work yet
   * @throws MiddlewareError when the middleware cannot be loaded; ReloadError when a route file as a whole is wrong
   */
  async start(): Promise<Inspection> {
    const { middleware, registry } = this.#options
    const config = this.#options.readMiddlewareConfig()
    const prepared = await middleware.prepare(config.load)
    try {
      const found = await this.#inspect(prepared, config)
      const wrongFiles = found.problems.filter((problem) => problem.index === null)
      if (wrongFiles.length > 0) throw new ReloadError('Cannot load the routes', wrongFiles)
      registry.replaceApplication(found.routes)
      await prepared.commit()
      return found
    } catch (error) {
      await prepared.abandon()
      throw error
    }
  }

  /**
   * Reads everything anew and swaps the table when all of it is good.
   * @throws ReloadError with every problem; the old table, modules and background work stay
   */
  async reload(): Promise<ReloadResult> {
    const { middleware, modules, registry } = this.#options
    try {
      await modules.refresh()
      const config = this.#options.readMiddlewareConfig()
      const prepared = await middleware.prepare(config.load)
      try {
        const found = await this.#inspect(prepared, config)
        const wrong = [...found.problems, ...found.broken]
        if (wrong.length > 0) throw new ReloadError('Cannot reload the routes, so the old ones stay', wrong)
        const totalDeleted = registry.replaceApplication(found.routes)
        await prepared.commit()
        return { totalDeleted, totalLoaded: found.routes.length, warnings: found.warnings.map(describe) }
      } catch (error) {
        await prepared.abandon()
        throw error
      }
    } catch (error) {
      if (!(error instanceof MiddlewareError)) throw error
      const problem = { file: error.file, index: null, name: '', error: error.message }
      throw new ReloadError('Cannot reload the routes, so the old ones stay', [problem], { cause: error })
    }
  }

  /** Loads modules and files and looks at all of them without changing anything; no `setup` runs. For `check`. */
  async inspect(): Promise<Inspection> {
    const config = this.#options.readMiddlewareConfig()
    return this.#inspect(await this.#options.middleware.prepare(config.load, false), config)
  }

  /** Ends the background work of the middleware modules. */
  stop(): Promise<void> {
    return this.#options.middleware.stop()
  }

  async #inspect(middleware: MiddlewareSet, config: MiddlewareConfig): Promise<Inspection> {
    const { root, routesFolder, builder } = this.#options
    const found = readRouteFiles(routesFolder, {
      root,
      middlewareKnown: (name) => middleware.byName.has(name),
      middlewareNames: () => middleware.byName.keys(),
    })
    const routes: Route<Chain>[] = []
    const broken: ReloadProblem[] = []
    const warnings: ReloadProblem[] = [
      ...config.warnings.map((error) => ({ file: config.file, index: null, name: '', error })),
      ...found.warnings.map(({ warning, ...place }) => ({ ...place, error: warning })),
    ]
    for (const { file, records } of found.files) {
      for (const good of records) {
        const built = await builder.build(good, middleware)
        routes.push(built.route)
        if (built.problem === undefined) continue
        const problem = { file, index: good.index, name: good.record.name, error: built.problem }
        ;(built.broken ? broken : warnings).push(problem)
      }
    }
    return { routes, problems: found.problems, broken, warnings }
  }
}
