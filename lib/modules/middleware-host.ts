/**
 * The middleware of an application: the server's own with its settings, and the application's modules, which are
 * loaded, set up (`setup(app)`), and reloaded.
 *
 * A module's default export is registered under the file's base name, its named functions under their own names. Two
 * exports are not middleware: `setup` runs after the module has been loaded, to start timers, feeds and publishers, and
 * may return a teardown for the stop; `settings` is a schema for the settings of the application.
 *
 * A reload has steps. `prepare` loads the modules, `setUp` sets up the new ones, `commit` activates the new set and
 * tears down the modules that it replaced, `abandon` tears down the new ones. An unchanged module keeps running. The
 * old and the new version of a changed module run side by side for a moment, so that a failing `setup` changes nothing.
 */
import { basename, extname, join } from 'node:path'
import type { Settings, Teardown } from 'svc'
import { endsWithin } from '../base/deadline.ts'
import { reasonOf } from '../base/reason.ts'
import { type BuiltInGroup, type PreparedSettings, SettingsError } from '../chain/settings.ts'
import type { Middleware } from '../chain/compose.ts'
import { joinErrors, MiddlewareError, type MiddlewareConfig } from './middleware-config.ts'
import type { ModuleLoadError } from './module-load-error.ts'
import type { ModuleNamespace, Modules } from './modules.ts'
import type { Scope } from './registrations.ts'

/** A module's `setup`: takes the application and may return a teardown. */
export type Setup<App> = (app: App) => void | Teardown | Promise<void | Teardown>

/** A set of middleware by name. */
export interface MiddlewareSet {
  readonly byName: ReadonlyMap<string, Middleware>
  /** Middleware that cannot run with the current settings, with the reason. */
  readonly unready: ReadonlyMap<string, string>
  /** By the name of a middleware: the middleware that must come before it on a route. */
  readonly requires: ReadonlyMap<string, string>
}

/** The settings of the application, and why they are wrong, if they are. */
export interface CheckedSettings {
  readonly settings: Settings
  readonly errors: readonly MiddlewareError[]
}

/** The active set, and the settings in use. */
interface ActiveMiddleware extends MiddlewareSet {
  readonly modules: readonly LoadedModule[]
  readonly settings: Settings
  readonly setup: MiddlewareConfig['setup']
}

type Group = Omit<BuiltInGroup, 'table'>

/** A module and its exports. */
export interface FoundModule {
  readonly file: string
  readonly namespace: ModuleNamespace
}

interface LoadedModule extends FoundModule {
  /** Ends before the teardown: what the module registered may use what that closes. */
  readonly scope: Scope
  readonly teardown: Teardown | undefined
}

/** A set that has been loaded. Call `setUp`, then `commit`; or `abandon` at any time before that. */
export interface PreparedMiddleware extends MiddlewareSet {
  /** Harmless mistakes in the settings. */
  readonly warnings: readonly string[]
  /** Runs the `setup` of the modules that are new or have changed. Throws MiddlewareError that names the file. */
  setUp(): Promise<void>
  /** Activates the set. Resolves when the replaced modules are torn down; failures go to `onProblem`. */
  commit(): Promise<void>
  /** Drops the set and tears down the modules that were set up for it. */
  abandon(): Promise<void>
}

/** A group of the server's own middleware with its prepared settings. */
interface SettingsOfGroup {
  readonly group: Group
  readonly prepared: PreparedSettings
}

/** The dependencies and settings of the middleware of one server. */
interface MiddlewareHostOptions<App> {
  /** `paths.middleware`, absolute. */
  readonly folder: string
  readonly modules: Pick<Modules, 'load'>
  /** The server's own middleware. */
  readonly builtIn: readonly Group[]
  /** Creates the argument of `setup`. What a module registers with it ends with the scope. */
  readonly app: (settings: Settings, scope: Scope) => App
  /** Checks the settings of the application by the schemas that modules export as `settings`. */
  readonly readSettings: (modules: readonly FoundModule[]) => CheckedSettings
  /** The longest time for one teardown, in milliseconds. */
  readonly teardownTimeoutMs: number
  /** Called when a teardown failed or took too long. */
  readonly onProblem: (message: string, error: unknown) => void
}

/** The middleware of one server. */
export class MiddlewareHost<App> {
  readonly #options: MiddlewareHostOptions<App>
  readonly #requires: MiddlewareSet['requires']
  #current: ActiveMiddleware

  constructor(options: MiddlewareHostOptions<App>) {
    this.#options = options
    this.#requires = new Map(options.builtIn.flatMap((group) => [...(group.requires ?? [])]))
    const byName = builtInByName(options.builtIn)
    const { settings } = options.readSettings([])
    this.#current = { requires: this.#requires, byName, unready: new Map(), modules: [], settings, setup: {} }
  }

  /** The active set, and the settings in use: of the application, and of the server's own middleware. */
  get current(): Omit<ActiveMiddleware, 'modules'> {
    return this.#current
  }

  /**
   * Reads the settings and loads the modules, without activating them. Runs no `setup`.
   * @throws MiddlewareError that names every faulty file
   */
  async prepare(config: MiddlewareConfig): Promise<PreparedMiddleware> {
    const byName = builtInByName(this.#options.builtIn)
    const found: FoundModule[] = []
    const errors: MiddlewareError[] = []
    for (const file of config.load) {
      try {
        const namespace = await this.#load(file)
        register(file, namespace, byName)
        found.push({ file, namespace })
      } catch (error) {
        if (!(error instanceof MiddlewareError)) throw error
        errors.push(error)
      }
    }
    const checked = this.#options.readSettings(found)
    const settings = await this.#readSettings(config, [...errors, ...checked.errors])
    const isIdle = ({ namespace }: FoundModule): boolean =>
      namespace['settings'] === undefined && !Object.values(namespace).some((value) => typeof value === 'function')
    const unready = new Map<string, string>()
    for (const { group, prepared } of settings) {
      for (const [name, run] of prepared.middleware ?? []) byName.set(name, run)
      if (prepared.unready !== undefined) {
        for (const name of group.middleware.keys()) unready.set(name, prepared.unready)
      }
    }
    const modules: LoadedModule[] = []
    const fresh: LoadedModule[] = []
    return {
      requires: this.#requires,
      byName,
      unready,
      warnings: [
        ...settings.flatMap(({ prepared }) => prepared.warnings),
        ...found.filter(isIdle).map(({ file }) => `${file} exports no function: there is no middleware in it`),
      ],
      setUp: async () => {
        const inUse = this.#current.modules
        const same = (one: FoundModule) => (other: FoundModule): boolean =>
          other.file === one.file && other.namespace === one.namespace
        for (const module of inUse) if (!found.some(same(module))) module.scope.state = 'leaving'
        for (const each of found) {
          const kept = inUse.find(same(each))
          const module = kept ?? (await this.#setUp(each, checked.settings))
          modules.push(module)
          if (module !== kept) fresh.push(module)
        }
      },
      commit: async () => {
        const replaced = this.#current.modules.filter((module) => !modules.includes(module))
        const { settings: inUse } = checked
        this.#current = { requires: this.#requires, byName, unready, modules, settings: inUse, setup: config.setup }
        for (const { prepared } of settings) prepared.commit()
        await this.#tearDown(replaced)
      },
      abandon: async () => {
        for (const { prepared } of settings) prepared.abandon?.()
        for (const { scope } of this.#current.modules) scope.state = 'in use'
        await this.#tearDown(fresh)
      },
    }
  }

  /** Tears everything down, in reverse order of setup. */
  async stop(): Promise<void> {
    const { modules } = this.#current
    this.#current = { ...this.#current, modules: [] }
    await this.#tearDown(modules)
  }

  /**
   * Reads the settings of every group, so that all problems are reported at once.
   * @param errors other problems to report along with them
   */
  async #readSettings(config: MiddlewareConfig, errors: readonly MiddlewareError[]): Promise<SettingsOfGroup[]> {
    const settings: SettingsOfGroup[] = []
    const problems: string[] = []
    for (const group of this.#options.builtIn) {
      const given = config.setup[group.name]
      try {
        if (given !== undefined) await group.load?.()
        settings.push({ group, prepared: group.prepare(given) })
      } catch (error) {
        if (!(error instanceof SettingsError)) throw error
        problems.push(...error.problems)
      }
    }
    const all = [...errors]
    const located = problems.map(config.locate)
    for (const file of new Set(located.map((problem) => problem.file))) {
      const messages = located.filter((problem) => problem.file === file).map(({ message }) => message)
      all.push(new MiddlewareError(file, `Cannot load ${file}: ${messages.join('; ')}`))
    }
    if (all.length === 0) return settings
    for (const { prepared } of settings) prepared.abandon?.()
    throw joinErrors(all)
  }

  async #load(file: string): Promise<ModuleNamespace> {
    try {
      return await this.#options.modules.load(join(this.#options.folder, file))
    } catch (error) {
      const { message, missing } = error as ModuleLoadError // `load` throws nothing else.
      throw new MiddlewareError(file, missing ? `${message}, which config.json names` : message, { cause: error })
    }
  }

  async #setUp({ file, namespace }: FoundModule, settings: Settings): Promise<LoadedModule> {
    const setup = namespace['setup']
    const scope: Scope = { state: 'in use' }
    if (setup === undefined) return { file, namespace, scope, teardown: undefined }
    if (typeof setup !== 'function') {
      throw new MiddlewareError(file, `Cannot load middleware ${file}: its setup is not a function`)
    }
    try {
      const teardown = await (setup as Setup<App>)(this.#options.app(settings, scope))
      return { file, namespace, scope, teardown: typeof teardown === 'function' ? teardown : undefined }
    } catch (error) {
      scope.state = 'ended'
      const reason = reasonOf(error)
      throw new MiddlewareError(file, `Cannot set up middleware ${file}: ${reason}`, { cause: error })
    }
  }

  async #tearDown(modules: readonly LoadedModule[]): Promise<void> {
    const { teardownTimeoutMs } = this.#options
    for (const { scope } of modules) scope.state = 'ended'
    for (const { file, teardown } of modules.toReversed()) {
      if (teardown === undefined) continue
      try {
        // A teardown that hangs must not block the others, a reload or a stop.
        if (await endsWithin(teardownTimeoutMs, Promise.resolve(teardown()))) continue
        throw new Error(`It did not end within ${teardownTimeoutMs / 1000} s: no longer waiting for it`)
      } catch (error) {
        this.#options.onProblem(`the teardown of middleware ${file} failed`, error)
      }
    }
  }
}

function builtInByName(groups: readonly Group[]): Map<string, Middleware> {
  return new Map(groups.flatMap((group) => [...group.middleware]))
}

function register(file: string, namespace: ModuleNamespace, byName: Map<string, Middleware>): void {
  for (const [exported, value] of Object.entries(namespace)) {
    if (exported === 'setup' || exported === 'settings' || typeof value !== 'function') continue
    const name = exported === 'default' ? basename(file, extname(file)) : exported
    if (byName.has(name)) throw new MiddlewareError(file, `Cannot load middleware ${file}: the name ${name} is taken`)
    byName.set(name, value as Middleware)
  }
}
