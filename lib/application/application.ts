/**
 * The application of a server: its route files with their actions and middleware, loaded at the start and renewed while
 * it runs.
 *
 * Surprise: a start and a reload judge differently. At the start something is better than nothing: a wrong record is
 * left out and said. At a reload the old table is better: one thing wrong, and nothing changes.
 */
import { SerialQueue } from '../base/serial-queue.ts'
import { ReloadError, describeAll, type ReloadProblem, type ReloadResult } from '../control/commands.ts'
import { MiddlewareError, type MiddlewareConfig } from './middleware-config.ts'
import type { MiddlewareHost, MiddlewareSet, PreparedMiddleware } from './middleware-host.ts'
import type { Chain } from '../chain/compose.ts'
import type { Modules } from './modules.ts'
import type { Registry, Route } from '../routing/registry.ts'
import { readRouteFiles } from './route-files.ts'
import type { BuildRoute, RouteBuilder } from './route-builder.ts'

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
  /** The records that other machines keep, by name; they are loaded with the files. */
  readonly kept: ReadonlyMap<string, unknown>
}

/** What the files hold, good and bad side by side. */
export interface Inspection {
  readonly routes: readonly Route<Chain>[]
  /** Files and records that cannot be used. */
  readonly problems: readonly ReloadProblem[]
  /** Modules that do not load. Their routes answer 500. */
  readonly broken: readonly ReloadProblem[]
  /** Actions that are not there yet, or lack their export. Their routes answer 500 until that is mended. */
  readonly incomplete: readonly ReloadProblem[]
  /** What does no harm: fields and keys that nobody knows, a folder of route files that is not there. */
  readonly notes: readonly ReloadProblem[]
}

/** What was taken into use, and the application's routes that it replaced. */
interface Replacement {
  readonly inspection: Inspection
  readonly replaced: readonly Route<Chain>[]
}

const noMiddleware: MiddlewareSet = { byName: new Map(), unready: new Map(), requires: new Map() }
const oldOnesStay = 'Cannot reload the routes, so the old ones stay'

/** The application of one server. */
export class Application<SetupApp> {
  readonly #options: ApplicationOptions<SetupApp>
  /** Starts and reloads. */
  readonly #changes = new SerialQueue()
  #stopped = false
  /** Whether the folder of route files was there: at a reload its absence is a mishap, not a wish for no routes. */
  #hadFolder = false

  constructor(options: ApplicationOptions<SetupApp>) {
    this.#options = options
  }

  /**
   * Loads everything for the first time and registers what is good.
   * @returns what was left out, and what does not work yet
   * @throws MiddlewareError when the middleware cannot be loaded; ReloadError when a route file as a whole is wrong;
   *   Error when the application was stopped meanwhile
   */
  start(): Promise<Inspection> {
    return this.#inTurn(async () => {
      const found = await this.#replace((inspection) => {
        const wrongFiles = inspection.problems.filter((problem) => problem.index === null)
        if (wrongFiles.length > 0) throw new ReloadError('Cannot load the routes', wrongFiles)
      })
      return found.inspection
    })
  }

  /**
   * Reads everything anew and swaps the table when all of it is good.
   * @throws ReloadError with every problem; the old table, modules and background work stay
   */
  reload(): Promise<ReloadResult> {
    return this.#inTurn(async () => {
      try {
        await this.#options.modules.refresh()
        const { inspection, replaced } = await this.#replace(({ problems, broken }) => {
          const wrong = [...problems, ...broken]
          if (wrong.length > 0) throw new ReloadError(oldOnesStay, wrong)
        })
        const { routes, incomplete, notes } = inspection
        const totals = { totalDeleted: replaced.length, totalLoaded: routes.length }
        return { ...totals, ...differences(replaced, routes), warnings: describeAll([...incomplete, ...notes]) }
      } catch (error) {
        if (error instanceof ReloadError) throw error
        throw new ReloadError(oldOnesStay, this.#problemsOf(error), { cause: error })
      }
    })
  }

  /**
   * Loads modules and files and looks at all of them without changing anything; no `setup` runs. For `check`. Where the
   * middleware cannot be loaded, that is one of the problems, and every name of a middleware passes.
   */
  async inspect(): Promise<Inspection> {
    const wrong: ReloadProblem[] = []
    let config: MiddlewareConfig | undefined
    let middleware: PreparedMiddleware | undefined
    try {
      config = this.#options.readMiddlewareConfig()
      middleware = await this.#options.middleware.prepare(config)
    } catch (error) {
      if (!(error instanceof MiddlewareError)) throw error
      wrong.push(...this.#problemsOf(error))
    }
    const found = await this.#inspect(middleware, config)
    await middleware?.abandon()
    return { ...found, problems: [...wrong, ...found.problems] }
  }

  /** What keeps the middleware from being loaded, or anything else, in the form of what is wrong with a route. */
  #problemsOf(error: unknown): ReloadProblem[] {
    const place = { index: null, name: '' }
    if (!(error instanceof MiddlewareError)) {
      return [{ ...place, file: this.#options.root, error: (error as Error).message }]
    }
    return error.all.map(({ file, message }) => ({ ...place, file, error: message }))
  }

  /** Ends the background work of the middleware modules. Resolves once a start or reload under way has given up too. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#options.middleware.stop()
    await this.#changes.ended()
  }

  /** Runs one start or reload after the other, and none once the application has been stopped. */
  #inTurn<Result>(change: () => Promise<Result>): Promise<Result> {
    return this.#changes.run(() => {
      this.#refuseWhenStopped()
      return change()
    })
  }

  #refuseWhenStopped(): void {
    if (this.#stopped) throw new Error('Cannot load the application: the server is being stopped')
  }

  /**
   * Loads all there is aside and takes it into use.
   * @param judge throws when what was found must not be used; then nothing has changed
   */
  async #replace(judge: (found: Inspection) => void): Promise<Replacement> {
    const { middleware, registry } = this.#options
    const config = this.#options.readMiddlewareConfig()
    const prepared = await middleware.prepare(config)
    try {
      const inspection = await this.#inspect(prepared, config)
      judge(inspection)
      await prepared.setUp()
      this.#refuseWhenStopped()
      const replaced = registry.list().filter((route) => !route.system)
      registry.replaceApplication(inspection.routes)
      await prepared.commit()
      return { inspection, replaced }
    } catch (error) {
      await prepared.abandon()
      throw error
    }
  }

  /** @param middleware undefined when it cannot be loaded: the routes are then looked at without theirs */
  async #inspect(
    middleware: PreparedMiddleware | undefined,
    config: MiddlewareConfig | undefined,
  ): Promise<Inspection> {
    const { root, routesFolder, builder, kept } = this.#options
    const rules = {
      root,
      middlewareKnown: (name: string) => middleware?.byName.has(name) ?? true,
      middlewareNames: () => middleware?.byName.keys() ?? [],
    }
    const found = readRouteFiles(routesFolder, rules, [...kept.values()])
    const routes: Route<Chain>[] = []
    const broken: ReloadProblem[] = []
    const incomplete: ReloadProblem[] = []
    const build = middleware === undefined ? withoutMiddleware(builder) : builder.batch(middleware)
    for (const { file, records } of found.files) {
      for (const good of records) {
        const built = await build(good)
        routes.push(built.route)
        if (built.problem === undefined) continue
        const problem = { file, index: good.index, name: good.record.name, error: built.problem }
        ;(built.broken ? broken : incomplete).push(problem)
      }
    }
    const notes: ReloadProblem[] = [
      ...[...(config?.warnings ?? []), ...(middleware?.warnings ?? [])].map((error) => ({
        file: config?.file ?? '',
        index: null,
        name: '',
        error,
      })),
      ...found.warnings.map(({ warning, ...place }) => ({ ...place, error: warning })),
    ]
    const folder = { file: routesFolder, index: null, name: '', error: 'the folder of route files is not there' }
    const wasThere = this.#hadFolder && found.missing
    this.#hadFolder ||= !found.missing
    if (found.missing && !wasThere) notes.push(folder)
    return { routes, problems: wasThere ? [folder, ...found.problems] : found.problems, broken, incomplete, notes }
  }
}

/** Routes are looked at without their middleware, and keep their records. */
function withoutMiddleware(builder: RouteBuilder): BuildRoute {
  const build = builder.batch(noMiddleware)
  return async (good) => {
    const built = await build({ ...good, record: { ...good.record, middleware: '' } })
    return { ...built, route: { ...built.route, record: good.record } }
  }
}

/** The names of routes that came, went, and have another record now. */
function differences(
  before: readonly Route<Chain>[],
  after: readonly Route<Chain>[],
): Pick<ReloadResult, 'added' | 'removed' | 'changed'> {
  const old = new Map(before.map(({ record }) => [record.name, JSON.stringify(record)]))
  const added: string[] = []
  const changed: string[] = []
  for (const { record } of after) {
    const previous = old.get(record.name)
    if (previous === undefined) added.push(record.name)
    else if (previous !== JSON.stringify(record)) changed.push(record.name)
    old.delete(record.name)
  }
  return { added, removed: [...old.keys()], changed }
}
