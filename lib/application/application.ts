/**
 * The application of a server: its route files with their actions and middleware, loaded when the server starts and
 * reloaded while it runs.
 *
 * A start and a reload judge differently. A start leaves out a wrong record and logs it: some routes are better than
 * none. A reload with one problem changes nothing: the old table is better.
 */
import { SerialQueue } from '../base/serial-queue.ts'
import { ReloadError, describeAll, type ReloadProblem, type ReloadResult } from '../control/commands.ts'
import { MiddlewareError, type MiddlewareConfig } from '../chain/config.ts'
import type { MiddlewareHost, MiddlewareSet, PreparedMiddleware } from '../chain/host.ts'
import type { Chain } from '../chain/compose.ts'
import type { Modules } from './modules.ts'
import type { Registry, Route } from '../routing/registry.ts'
import { readRouteFiles } from './route-files.ts'
import type { BuildRoute, RouteBuilder } from './route-builder.ts'

/** The parts that an application is made of. */
interface ApplicationOptions<SetupApp> {
  /** `paths.root`, absolute. */
  readonly root: string
  /** `paths.routes`, absolute. */
  readonly routesFolder: string
  readonly registry: Registry<Chain>
  readonly modules: Pick<Modules, 'refresh'>
  readonly builder: RouteBuilder
  readonly middleware: MiddlewareHost<SetupApp>
  /** Reads the middleware configuration. Throws MiddlewareError. */
  readonly readMiddlewareConfig: () => MiddlewareConfig
  /** The records that other machines keep, by name; they are loaded with the files. */
  readonly kept: ReadonlyMap<string, unknown>
}

/** The routes of the files and all their problems. */
export interface Inspection {
  readonly routes: readonly Route<Chain>[]
  /** Files and records that cannot be used. */
  readonly problems: readonly ReloadProblem[]
  /** Modules that do not load. Their routes answer 500. */
  readonly broken: readonly ReloadProblem[]
  /** Actions that are missing or lack their export. Their routes answer 500 until that is corrected. */
  readonly incomplete: readonly ReloadProblem[]
  /** Harmless findings: unknown fields and keys, a missing folder of route files. */
  readonly notes: readonly ReloadProblem[]
}

const noMiddleware: MiddlewareSet = { byName: new Map(), unready: new Map(), requires: new Map() }
const oldOnesStay = 'Cannot reload the routes, so the old ones stay'

/** The application of one server. */
export class Application<SetupApp> {
  readonly #options: ApplicationOptions<SetupApp>
  /** Starts and reloads. */
  readonly #changes = new SerialQueue()
  #stopped = false
  /**
   * Whether the folder of route files was there: then its absence at a reload is a mistake, not a wish for no routes.
   */
  #hadFolder = false

  constructor(options: ApplicationOptions<SetupApp>) {
    this.#options = options
  }

  /**
   * Loads everything for the first time and registers the good routes.
   * @returns everything that was left out or does not work yet
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
   * Reads everything again and replaces the routes when there is no problem.
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
   * Loads modules and files and checks all of them without changing anything; no `setup` runs. For `check`. A
   * middleware that cannot be loaded is one of the problems, and then every name of a middleware is accepted.
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

  /** Ends the background work of the middleware modules. Resolves when a running start or reload has given up too. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#options.middleware.stop()
    await this.#changes.ended()
  }

  /** An error that concerns no route, in the form of a problem of a route. */
  #problemsOf(error: unknown): ReloadProblem[] {
    if (error instanceof MiddlewareError) return error.all.map(({ file, message }) => problemOfFile(file, message))
    return [problemOfFile(this.#options.root, (error as Error).message)]
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
   * Loads everything aside and takes it into use.
   * @param judge throws to refuse it; then nothing has changed
   * @returns the inspection, and the application's routes that were replaced
   */
  async #replace(
    judge: (found: Inspection) => void,
  ): Promise<{ inspection: Inspection; replaced: readonly Route<Chain>[] }> {
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

  /** @param middleware undefined when it cannot be loaded: the routes are then built without theirs */
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
    const ofMiddleware = [...(config?.warnings ?? []), ...(middleware?.warnings ?? [])]
    const notes = [...ofMiddleware.map((text) => problemOfFile(config?.file ?? '', text)), ...found.warnings]
    const folder = problemOfFile(routesFolder, 'the folder of route files is not there')
    const wasThere = this.#hadFolder && found.missing
    this.#hadFolder ||= !found.missing
    if (found.missing && !wasThere) notes.push(folder)
    return { routes, problems: wasThere ? [folder, ...found.problems] : found.problems, broken, incomplete, notes }
  }
}

function problemOfFile(file: string, error: string): ReloadProblem {
  return { file, index: null, name: '', error }
}

/** Builds routes without their middleware; they keep their records. */
function withoutMiddleware(builder: RouteBuilder): BuildRoute {
  const build = builder.batch(noMiddleware)
  return async (good) => {
    const built = await build({ ...good, record: { ...good.record, middleware: '' } })
    return { ...built, route: { ...built.route, record: good.record } }
  }
}

/** The names of routes that are new, are gone, and have another record now. */
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
