/**
 * The application of a server: its route files with their actions and middleware, loaded when the server starts and
 * reloaded while it runs.
 *
 * A start and a reload differ. A start skips an invalid record and logs it: some routes are better than none. A reload
 * with any problem changes nothing: the old table is better.
 */
import { SerialQueue } from '../base/serial-queue.ts'
import { MiddlewareError, type MiddlewareConfig } from '../modules/middleware-config.ts'
import type { MiddlewareHost, MiddlewareSet, PreparedMiddleware } from '../modules/middleware-host.ts'
import type { Chain } from '../chain/compose.ts'
import { parseRecord, type GoodRecord, type RecordRules } from './record.ts'
import { NameTakenError, type PrefixFormat, type Registry } from '../routing/registry.ts'
import type { Route, RouteRecord } from '../routing/route.ts'
import {
  ReloadError,
  RouteRefusedError,
  describe,
  describeAll,
  type AddResult,
  type ReloadProblem,
  type ReloadResult,
} from '../control/commands.ts'
import type { RouteEntry } from '../control/desired-state.ts'
import type { Modules } from '../modules/modules.ts'
import { isPersisted, persistedFile } from '../control/persisted-routes.ts'
import { readRouteFiles } from './route-files.ts'
import type { BuildRoute, RouteBuilder } from './route-builder.ts'
import { buildEntries, joinRoutes, resultsOf, type BuiltEntry, type RouteSources } from './route-table.ts'

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
  /** Reads the job files. Rejects with MissingRoomError when an installation without jobs has some. */
  readonly prepareJobs: () => Promise<PreparedJobs>
}

/** The jobs in the files, which are not in use yet, and their problems. */
export interface PreparedJobs extends Pick<Inspection, 'problems' | 'broken' | 'incomplete' | 'notes'> {
  /** Opens what they need. Rejects when that cannot be used; then nothing has changed. */
  readonly open: () => Promise<void>
  /** Replaces those in use. */
  readonly use: () => void
  /** Called instead of `use` when they are refused: those in use stay. */
  readonly abandon: () => void
}

/** The routes in the files and all their problems. */
export interface Inspection {
  readonly routes: readonly Route<Chain>[]
  readonly formats: readonly PrefixFormat[]
  /** Files and records that cannot be used. */
  readonly problems: readonly ReloadProblem[]
  /** Modules that fail to load. Their routes answer 500. */
  readonly broken: readonly ReloadProblem[]
  /** Actions that are missing or lack their export. Their routes answer 500 until this is fixed. */
  readonly incomplete: readonly ReloadProblem[]
  /** Harmless findings: unknown fields and keys, a missing folder of route files. */
  readonly notes: readonly ReloadProblem[]
}

/** What a reload would change. */
export interface ReloadPreview {
  readonly added: readonly RouteRecord[]
  readonly removed: readonly RouteRecord[]
  readonly changed: readonly { readonly from: RouteRecord; readonly to: RouteRecord }[]
  /** Why it would be refused, changing nothing. */
  readonly problems: readonly ReloadProblem[]
}

const noMiddleware: MiddlewareSet = {
  byName: new Map(),
  unready: new Map(),
  requires: new Map(),
}
const oldOnesStay = 'Cannot reload the routes, so the old ones stay'

/** The application of one server. */
export class Application<SetupApp> {
  readonly #options: ApplicationOptions<SetupApp>
  /** Starts and reloads. */
  readonly #changes = new SerialQueue()
  #stopped = false
  /** Whether the folder of route files has existed: a reload is then refused if it is missing. */
  #hadFolder = false
  #sources: RouteSources = { files: [], built: new Map() }
  #found: Pick<Inspection, 'problems' | 'broken' | 'incomplete'> = { problems: [], broken: [], incomplete: [] }
  /** Those of them that concern jobs. */
  #foundOfJobs: ReadonlySet<ReloadProblem> = new Set()
  #warnings: readonly string[] = []
  /** Why the last reload was refused, if it was. */
  #refusal: string | undefined

  constructor(options: ApplicationOptions<SetupApp>) {
    this.#options = options
  }

  /** One line per problem of the last load, preceded by that of a reload refused since. */
  get warnings(): readonly string[] {
    if (this.#refusal === undefined) return this.#warnings
    return [`the last reload was refused, and the next start reads the same files: ${this.#refusal}`, ...this.#warnings]
  }

  /** Whether the last reload was refused. */
  get isReloadRefused(): boolean {
    return this.#refusal !== undefined
  }

  /** The settings in use: of the application, and of the built-in middleware. */
  get settings(): Pick<MiddlewareHost<SetupApp>['current'], 'settings' | 'setup'> {
    return this.#options.middleware.current
  }

  /**
   * Returns a line for each route or job that the last load left out or whose action does not run, without its position
   * in the file, so that processes that read the file at different times can be compared.
   */
  faults(): readonly string[] {
    const { registry } = this.#options
    const { problems, broken, incomplete } = this.#found
    // A route deleted at run time is still in its file.
    const used = [...broken, ...incomplete].filter((problem) => {
      return this.#foundOfJobs.has(problem) || registry.get(problem.name) !== undefined
    })
    const inFiles = [...problems, ...used].map(({ file, name, error }) => describe({ file, index: null, name, error }))
    const inEntries = [...this.#sources.built.values()].flatMap(({ problem, route: { record } }) =>
      problem === undefined ? [] : `route "${record.name}", added while the server ran: ${problem}`)
    return [...inFiles, ...inEntries]
  }

  /**
   * Loads everything for the first time and registers the good routes.
   * @returns everything that was left out or does not work yet
   * @throws MiddlewareError when the middleware cannot be loaded; ReloadError when a route file as a whole is invalid;
   *   Error when the application was stopped meanwhile
   */
  start(): Promise<Inspection> {
    return this.#inTurn(async () => {
      const { inspection } = await this.#replace([], ({ problems }) => {
        const wrongFiles = problems.filter((problem) => problem.index === null)
        if (wrongFiles.length > 0) throw new ReloadError('Cannot load the routes', wrongFiles)
      })
      const { problems, broken, incomplete, notes } = inspection
      this.#found = inspection
      this.#warnings = [...describeAll([...problems, ...broken]), ...describeAll([...incomplete, ...notes])]
      return inspection
    })
  }

  /**
   * Reads everything again and replaces the routes if there is no problem.
   * @param entries routes of the desired state, which override those of the files
   * @throws ReloadError with every problem; the old table, modules and background work then stay in use
   */
  reload(entries: readonly RouteEntry[] = []): Promise<ReloadResult> {
    return this.#inTurn(async () => {
      try {
        await this.#options.modules.refresh()
        const { inspection, replaced } = await this.#replace(entries, ({ problems, broken }) => {
          const wrong = [...problems, ...broken]
          if (wrong.length > 0) throw new ReloadError(oldOnesStay, wrong)
        })
        const { routes, incomplete, notes } = inspection
        const totals = { totalDeleted: replaced.length, totalLoaded: routes.length }
        this.#found = inspection
        this.#warnings = describeAll([...incomplete, ...notes])
        this.#refusal = undefined
        const { added, removed, changed } = differences(replaced, routes)
        return {
          ...totals,
          added: added.map(nameOf),
          removed: removed.map(nameOf),
          changed: changed.map(({ to }) => nameOf(to)),
          warnings: this.#warnings,
        }
      } catch (error) {
        const refused =
          error instanceof ReloadError ? error : new ReloadError(oldOnesStay, this.#problemsOf(error), { cause: error })
        this.#refusal = describeAll(refused.problems).join('; ')
        throw refused
      }
    })
  }

  /**
   * Sets the routes to those of the files, as last read, with those of the desired state on top.
   * @param entries each replaces the route with its name in the files, or deletes it
   * @returns the result of each newly registered route, by name
   * @throws RouteRefusedError for the first that cannot be registered; then nothing has changed
   */
  apply(entries: readonly RouteEntry[]): Promise<ReadonlyMap<string, AddResult>> {
    return this.#inTurn(async () => {
      const { registry, builder, middleware } = this.#options
      const { files, built: known } = this.#sources
      const build = this.#buildRecord(middleware.current, builder.batch(middleware.current))
      const sources = { files, built: await buildEntries(entries, known, build) }
      registry.replaceApplication(joinRoutes(sources, entries))
      this.#sources = sources
      return resultsOf(sources.built, known, registry)
    })
  }

  /**
   * Checks a record before it is added.
   * @param isPersistent whether it will be written to `admin.json`: then no route file may contain its name
   * @throws RouteRefusedError with every problem
   */
  check(value: unknown, isPersistent: boolean): GoodRecord['record'] {
    const { registry, middleware, routesFolder } = this.#options
    const { record } = this.#parse(value, middleware.current)
    const { name } = record
    if (registry.get(name) !== undefined) throw new RouteRefusedError(name, false, [new NameTakenError(name).message])
    if (isPersistent) refuseNameOfFile(name, routesFolder, this.#rules(middleware.current))
    return record
  }

  /**
   * Returns whether a route has this name, in the table or in `admin.json`.
   * @throws RangeError for a system route; RoutesUnsavedError when `admin.json` cannot be read
   */
  has(name: string): boolean {
    const { registry, routesFolder } = this.#options
    const route = registry.get(name)
    if (route?.system === true) throw new RangeError(`"${name}" is a system route: it cannot be removed`)
    return isPersisted(routesFolder, name) || route !== undefined
  }

  /** Returns the names of all routes now in the route files, or in one of them. */
  namesInFiles(only?: string): ReadonlySet<string> {
    const { routesFolder, middleware } = this.#options
    const { files } = readRouteFiles(routesFolder, this.#rules(middleware.current))
    const wanted = only === undefined ? files : files.filter(({ file }) => file === only)
    return new Set(wanted.flatMap(({ records }) => records.map(({ record }) => record.name)))
  }

  /**
   * Loads and checks all modules and files without changing anything; no `setup` runs. For `check`. If a middleware
   * cannot be loaded, that is one of the problems, and every middleware name is accepted.
   */
  async inspect(): Promise<Inspection> {
    const middlewareProblems: ReloadProblem[] = []
    let config: MiddlewareConfig | undefined
    let middleware: PreparedMiddleware | undefined
    try {
      config = this.#options.readMiddlewareConfig()
      middleware = await this.#options.middleware.prepare(config)
    } catch (error) {
      if (!(error instanceof MiddlewareError)) throw error
      middlewareProblems.push(...this.#problemsOf(error))
    }
    const { inspection } = await this.#inspect(middleware, config, [])
    await middleware?.abandon()
    return { ...inspection, problems: [...middlewareProblems, ...inspection.problems] }
  }

  /** Returns what a reload would change now, without changing it. Loaded modules are not read again. */
  preview(): Promise<ReloadPreview> {
    return this.#inTurn(async () => {
      const { routes, problems, broken } = await this.inspect()
      const refused = [...problems, ...broken]
      if (refused.length > 0) return { added: [], removed: [], changed: [], problems: refused }
      const before = this.#options.registry.list().filter((route) => !route.system)
      return { ...differences(before, routes), problems: [] }
    })
  }

  /** Ends the background work of the middleware modules. Resolves once a running start or reload has ended too. */
  async stop(): Promise<void> {
    this.#stopped = true
    await this.#options.middleware.stop()
    await this.#changes.ended()
  }

  /** Converts an error that concerns no route to problems. */
  #problemsOf(error: unknown): ReloadProblem[] {
    if (error instanceof MiddlewareError) {
      return error.all.map(({ file, message }) => problemOfFile(file, message.replace(`Cannot load ${file}: `, '')))
    }
    return [problemOfFile(this.#options.root, (error as Error).message)]
  }

  /** Runs starts, reloads and previews one after the other. Rejects once the application has been stopped. */
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
   * Loads everything, then swaps it in.
   * @param judge throws to refuse it; then nothing has changed
   * @returns the inspection, and the replaced routes of the application
   */
  async #replace(
    entries: readonly RouteEntry[],
    judge: (found: Inspection) => void,
  ): Promise<{ inspection: Inspection; replaced: readonly Route<Chain>[] }> {
    const { middleware, registry } = this.#options
    const config = this.#options.readMiddlewareConfig()
    const prepared = await middleware.prepare(config)
    let jobs: PreparedJobs | undefined
    try {
      const { inspection, sources, ...found } = await this.#inspect(prepared, config, entries)
      jobs = found.jobs
      judge(inspection)
      await jobs.open()
      await prepared.setUp()
      this.#refuseWhenStopped()
      const replaced = registry.list().filter((route) => !route.system)
      registry.replaceApplication(inspection.routes, inspection.formats)
      this.#sources = sources
      jobs.use()
      this.#foundOfJobs = new Set([...jobs.broken, ...jobs.incomplete])
      await prepared.commit()
      return { inspection, replaced }
    } catch (error) {
      jobs?.abandon()
      await prepared.abandon()
      throw error
    }
  }

  /** @param middleware undefined when it cannot be loaded: the routes are then built without middleware */
  async #inspect(
    middleware: PreparedMiddleware | undefined,
    config: MiddlewareConfig | undefined,
    entries: readonly RouteEntry[],
  ): Promise<{ readonly inspection: Inspection; readonly sources: RouteSources; readonly jobs: PreparedJobs }> {
    const { routesFolder, builder } = this.#options
    const jobs = await this.#options.prepareJobs()
    const found = readRouteFiles(routesFolder, this.#rules(middleware))
    const build = middleware === undefined ? withoutMiddleware(builder) : builder.batch(middleware)
    const files: Route<Chain>[] = []
    const broken: ReloadProblem[] = [...jobs.broken]
    const incomplete: ReloadProblem[] = [...jobs.incomplete]
    for (const { file, records } of found.files) {
      for (const good of records) {
        const { route, problem: error, broken: isBroken } = await build(good)
        files.push(route)
        const position = { file, index: good.index, name: good.record.name }
        if (error === undefined) continue
        const field = error.startsWith('middleware ') ? 'middleware' : 'action'
        const problem = { ...position, error, ...found.placeOf(file, good.index, field) }
        ;(isBroken ? broken : incomplete).push(problem)
      }
    }
    const missingFolder = problemOfFile(routesFolder, 'the folder of route files does not exist')
    const hasVanished = this.#hadFolder && found.missing
    this.#hadFolder ||= !found.missing
    const middlewareWarnings = [...(config?.warnings ?? []), ...(middleware?.warnings ?? [])]
    const located = middlewareWarnings.flatMap((text) => config?.locate(text) ?? [])
    const notes: ReloadProblem[] = [
      ...located.map(({ file, message }) => problemOfFile(file, message)),
      ...found.warnings,
      ...jobs.notes,
      ...(found.missing && !hasVanished ? [missingFolder] : []),
    ]
    const problems = [...(hasVanished ? [missingFolder] : []), ...found.problems, ...jobs.problems]
    let sources: RouteSources = { files, built: new Map() }
    let routes: readonly Route<Chain>[] = files
    try {
      sources = { files, built: await buildEntries(entries, new Map(), this.#buildRecord(middleware, build)) }
      routes = joinRoutes(sources, entries)
    } catch (error) {
      if (!(error instanceof RouteRefusedError)) throw error
      const position = { file: 'a route added while the server ran', index: null, name: error.routeName }
      problems.push({ ...position, error: error.message })
    }
    return { inspection: { routes, formats: found.formats, problems, broken, incomplete, notes }, sources, jobs }
  }

  /** @throws RouteRefusedError */
  #buildRecord(middleware: MiddlewareSet | undefined, build: BuildRoute): (record: unknown) => Promise<BuiltEntry> {
    return async (record) => {
      const good = this.#parse(record, middleware)
      return { ...(await build(good)), warnings: good.warnings }
    }
  }

  /** @throws RouteRefusedError */
  #parse(record: unknown, middleware: MiddlewareSet | undefined): GoodRecord {
    const parsed = parseRecord(record, this.#rules(middleware))
    if (!('record' in parsed)) throw new RouteRefusedError(parsed.name, parsed.reserved, parsed.problems)
    return parsed
  }

  #rules(middleware: MiddlewareSet | undefined): RecordRules {
    return {
      root: this.#options.root,
      middlewareKnown: (name) => middleware?.byName.has(name) ?? true,
      middlewareNames: () => middleware?.byName.keys() ?? [],
    }
  }
}

/** Refuses a name that a route file contains: it would fail every reload, and a start would skip one of the two. */
function refuseNameOfFile(name: string, routesFolder: string, rules: RecordRules): void {
  for (const { file, records } of readRouteFiles(routesFolder, rules).files) {
    if (file === persistedFile || records.every(({ record }) => record.name !== name)) continue
    const problem = `Cannot keep route "${name}": ${file} has that name too: change it there or choose another name`
    throw new RouteRefusedError(name, false, [problem])
  }
}

function problemOfFile(file: string, error: string): ReloadProblem {
  return { file, index: null, name: '', error }
}

/** Builds routes without their middleware; their records are unchanged. */
function withoutMiddleware(builder: RouteBuilder): BuildRoute {
  const build = builder.batch(noMiddleware)
  return async (good) => {
    const built = await build({ ...good, record: { ...good.record, middleware: '' } })
    return { ...built, route: { ...built.route, record: good.record } }
  }
}

const nameOf = ({ name }: RouteRecord): string => name

/** Returns the records of routes that were added, removed and changed. */
function differences(before: readonly Route<Chain>[], after: readonly Route<Chain>[]): Omit<ReloadPreview, 'problems'> {
  const old = new Map(before.map(({ record }) => [record.name, record]))
  const added: RouteRecord[] = []
  const changed: { from: RouteRecord; to: RouteRecord }[] = []
  for (const { record } of after) {
    const previous = old.get(record.name)
    if (previous === undefined) added.push(record)
    else if (JSON.stringify(previous) !== JSON.stringify(record)) changed.push({ from: previous, to: record })
    old.delete(record.name)
  }
  return { added, removed: [...old.values()], changed }
}
