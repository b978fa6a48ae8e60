/**
 * The modules of an application. After a change on disk, changed modules, and those that import them, are loaded again;
 * all other modules keep their instance and its state.
 *
 * Surprise: Node never frees a module, so each generation stays in memory until the process ends. The `import.meta.url`
 * of a reloaded module ends with a query (`?svc=1-3`). CommonJS has one instance per process: modules loaded by
 * `require` are removed from its cache, but an ES module loaded by `require` keeps its first instance.
 */
import { realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { isAbsolute, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { endsWithin } from '../base/deadline.ts'
import { SerialQueue } from '../base/serial-queue.ts'
import { isWithin, realPathOf } from '../files/paths.ts'
import { ModuleGraph } from './module-graph.ts'
import { announce, generationQuery, nextApplication, provideServer } from './module-hooks.ts'
import { linkLeadsOut, moduleLoadError, neverLoads, ModuleLoadError } from './module-load-error.ts'

/** The exports of a module by name; for a CommonJS module see `exportsOf`. */
export type ModuleNamespace = Readonly<Record<string, unknown>>

interface Entry {
  state: 'loading' | 'loaded' | 'failed'
  /** Its real path; empty until it is located. */
  real: string
  files: ReadonlySet<string>
  loading: Promise<ModuleNamespace>
}

/** The longest time for loading a module, in milliseconds: a top-level await may never end, and block a reload. */
const loadMs = 10_000

/** The modules of one application. */
export class Modules {
  readonly #root: string
  readonly #timeoutMs: number
  readonly #graph: ModuleGraph
  readonly #application = nextApplication()
  readonly #entries = new Map<string, Entry>()
  /** The generation of a file's current instance; a file that is not listed has its first instance. */
  readonly #generations = new Map<string, number>()
  /** Files that need new instances which are not announced yet. */
  readonly #stale = new Set<string>()
  #generation = 0
  /** Runs traces, refreshes and announcements one after the other. */
  readonly #inTurn = new SerialQueue()

  /**
   * @param root absolute path; `refresh` detects changes in the files below it that modules import
   * @param timeoutMs the longest time for loading a module
   * @throws RangeError when the root is not an absolute path
   */
  constructor(root: string, timeoutMs = loadMs) {
    if (!isAbsolute(root)) throw new RangeError(`Cannot load modules: the root must be an absolute path: it is ${root}`)
    this.#root = root
    this.#timeoutMs = timeoutMs
    this.#graph = new ModuleGraph(root)
  }

  /**
   * Returns the current instance of a module. Concurrent calls share one load. A failure is cached until
   * {@link refresh}, except for a missing file: the next call tries again.
   * @param file absolute path
   * @throws ModuleLoadError with the location and the reason
   */
  load(file: string): Promise<ModuleNamespace> {
    const known = this.#entries.get(file)
    if (known !== undefined) return known.loading
    const entry: Entry = { state: 'loading', real: '', files: new Set(), loading: Promise.resolve({}) }
    this.#entries.set(file, entry)
    entry.loading = this.#load(file, entry)
    return entry.loading
  }

  /**
   * Detects changes on disk. The next `load` of a module that changed, that imports a changed one, or that failed to
   * load returns a new instance. Afterwards, every holder of a module should `load` it again: for an unchanged module
   * it gets the same instance.
   * @returns the modules that have changed, as paths relative to the root with `/`
   * @throws Error when Node refuses the hook; the changes stay pending
   */
  refresh(): Promise<readonly string[]> {
    return this.#inTurn.run(() => this.#refresh())
  }

  /** Whether a module of the application is this file, or below this folder. It need not exist any more. */
  uses(path: string): boolean {
    return this.#graph.has(path) || this.#graph.has(realPathOf(path))
  }

  /** The files of the loaded modules and those that they import, by their real paths; none that may only be data. */
  files(): readonly string[] {
    return this.#graph.modules()
  }

  async #load(file: string, entry: Entry): Promise<ModuleNamespace> {
    try {
      const url = await this.#inTurn.run(() => this.#locate(file, entry))
      const loading: Promise<ModuleNamespace> = import(url)
      if (!(await endsWithin(this.#timeoutMs, loading))) throw neverLoads(this.#root, file, this.#timeoutMs)
      const exported = exportsOf(await loading, entry.real)
      entry.state = 'loaded'
      return exported
    } catch (error) {
      entry.state = 'failed'
      const failure =
        error instanceof ModuleLoadError
          ? error
          : await moduleLoadError(error, { file, root: this.#root, files: [...entry.files] })
      if (failure.missing && this.#entries.get(file) === entry) this.#entries.delete(file)
      throw failure
    }
  }

  /** Traces the imports before the module is imported, so that a change in between is detected. */
  async #locate(file: string, entry: Entry): Promise<string> {
    const { real, files, added, importsServer } = this.#graph.trace(file)
    entry.real = real
    entry.files = files
    if (!isWithin(this.#root, real)) throw linkLeadsOut(this.#root, file)
    if (importsServer) await provideServer()
    // After the first change, new files belong to a generation too: otherwise they would import first instances.
    if (this.#generation > 0 && added.length > 0) await this.#announce(this.#generation, added)
    const generation = this.#generations.get(real)
    const url = pathToFileURL(real).href
    return generation === undefined ? url : `${url}?${generationQuery(this.#application, generation)}`
  }

  async #refresh(): Promise<readonly string[]> {
    const changed = await this.#graph.refresh()
    for (const file of changed) this.#stale.add(file)
    const renewed: [string, Entry][] = []
    for (const [file, entry] of this.#entries) {
      if (entry.state === 'failed' || (await this.#isStale(file, entry))) renewed.push([file, entry])
    }
    for (const file of this.#filesOfFailuresOnly()) this.#stale.add(file)
    if (this.#stale.size > 0) {
      await this.#announce(this.#generation + 1, [...this.#stale])
      const { cache } = createRequire(import.meta.url)
      for (const file of this.#stale) delete cache[file]
      this.#stale.clear()
    }
    for (const [file, entry] of renewed) if (this.#entries.get(file) === entry) this.#entries.delete(file)
    return renewed.map(([file]) => relative(this.#root, file).split(sep).join('/'))
  }

  /** Whether a located module changed, imports a changed one, or its path now leads to another file. */
  async #isStale(file: string, { real }: Entry): Promise<boolean> {
    if (real === '') return false
    return this.#stale.has(real) || real !== (await realpath(file).catch(() => undefined))
  }

  /** The files imported only by failed modules: Node caches failures like modules, so they must be loaded again. */
  #filesOfFailuresOnly(): Set<string> {
    const entries = [...this.#entries.values()]
    const files = new Set(entries.filter((entry) => entry.state === 'failed').flatMap((entry) => [...entry.files]))
    for (const entry of entries) if (entry.state !== 'failed') for (const file of entry.files) files.delete(file)
    return files
  }

  async #announce(generation: number, files: readonly string[]): Promise<void> {
    await announce({ application: this.#application, generation, files })
    this.#generation = generation
    for (const file of files) this.#generations.set(file, generation)
  }
}

/**
 * Returns the exports of a module. For a CommonJS module, Node makes `module.exports` the default export, and exports
 * the names that it finds in the source without running it. Here every own name of `module.exports` is an export; the
 * default is `exports.default` if it exists, as compilers emit it, unless `module.exports` is a function.
 *
 * @param namespace the result of `import()`; returned unchanged for an ES module
 * @param file its real path
 */
function exportsOf(namespace: ModuleNamespace, file: string): ModuleNamespace {
  const whole = namespace['default']
  if (whole === null || (typeof whole !== 'object' && typeof whole !== 'function')) return namespace
  // Node 23 and later mark a CommonJS module with this export; before that, only the cache shows it.
  const ofCommonJs = namespace['module.exports'] ?? createRequire(import.meta.url).cache[file]?.exports
  if (whole !== ofCommonJs) return namespace
  const members = whole as Readonly<Record<string, unknown>> // An object or a function may have any.
  const exported = Object.fromEntries(Object.keys(members).map((name) => [name, members[name]]))
  if (typeof whole === 'function' || !Object.hasOwn(members, 'default')) return { ...exported, default: whole }
  return { ...exported, default: members['default'] }
}
