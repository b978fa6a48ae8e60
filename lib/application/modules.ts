/**
 * The application's modules: loads them, and after a change on disk loads the changed ones anew, with what imports
 * them, while everything else keeps its instance and its state.
 *
 * Surprises: Node never lets go of a module, so each generation stays in memory until the process ends. The
 * `import.meta.url` of a renewed module ends with a query (`?svc=1-3`). CommonJS has one instance a process: what
 * `require` loads is dropped from its cache. But an ES module that `require` loaded stays as it was first loaded.
 * And what is given for a CommonJS module is not its namespace, see `exportsOf`.
 */
import { realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { isAbsolute, relative, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { SerialQueue } from '../base/serial-queue.ts'
import { isWithin } from '../storage/paths.ts'
import { ModuleGraph } from './module-graph.ts'
import { announce, generationQuery, nextApplication } from './module-hooks.ts'
import { linkLeadsOut, moduleLoadError, ModuleLoadError } from './module-load-error.ts'

/** What a module exports, by name; of a CommonJS module what it means to export, and no `module.exports`. */
export type ModuleNamespace = Readonly<Record<string, unknown>>

/** The modules of one application. */
export interface Modules {
  /**
   * The present instance of a module. Calls at the same time share one load; a failure is kept until {@link refresh}.
   * That a file is not there is not kept: the next call looks again.
   *
   * @param file absolute path
   * @throws ModuleLoadError with the place and the reason
   */
  load(file: string): Promise<ModuleNamespace>
  /**
   * Looks at what changed on disk. The next `load` of a module that changed, that imports a changed one, or that failed
   * to load gives a new instance. Then everything that holds on to a module should `load` it again: for the others
   * that gives what they hold already.
   *
   * @returns those modules, as paths relative to the root with `/`
   * @throws Error when a file that is there cannot be read, or Node refuses the hook; no change is lost by that
   */
  refresh(): Promise<readonly string[]>
}

interface Entry {
  state: 'loading' | 'loaded' | 'failed'
  /** Its real path; empty until it is located. */
  real: string
  files: ReadonlySet<string>
  loading: Promise<ModuleNamespace>
}

/** @param options `root`: absolute path; what modules import below it is watched for changes by `refresh` */
export function createModules(options: { readonly root: string }): Modules {
  if (!isAbsolute(options.root)) {
    throw new RangeError(`Cannot load modules: the root must be an absolute path: it is ${options.root}`)
  }
  return new ApplicationModules(options.root)
}

class ApplicationModules implements Modules {
  readonly #root: string
  readonly #graph: ModuleGraph
  readonly #application = nextApplication()
  readonly #entries = new Map<string, Entry>()
  /** The generation from which on a file has its present instance; without one it is the first. */
  readonly #generations = new Map<string, number>()
  /** Files that need new instances and have none announced yet. */
  readonly #stale = new Set<string>()
  #generation = 0
  /** Traces, refreshes and announcements, each of which sees a state that stands still. */
  readonly #inTurn = new SerialQueue()

  constructor(root: string) {
    this.#root = root
    this.#graph = new ModuleGraph(root)
  }

  load(file: string): Promise<ModuleNamespace> {
    const known = this.#entries.get(file)
    if (known !== undefined) return known.loading
    const entry: Entry = { state: 'loading', real: '', files: new Set(), loading: Promise.resolve({}) }
    this.#entries.set(file, entry)
    entry.loading = this.#load(file, entry)
    return entry.loading
  }

  refresh(): Promise<readonly string[]> {
    return this.#inTurn.run(() => this.#refresh())
  }

  async #load(file: string, entry: Entry): Promise<ModuleNamespace> {
    try {
      const url = await this.#inTurn.run(() => this.#locate(file, entry))
      const exported = exportsOf(await import(url), entry.real)
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

  /** Takes note of what the module imports, before it is imported: a change in between is then seen as one. */
  async #locate(file: string, entry: Entry): Promise<string> {
    const { real, files, added } = this.#graph.trace(file)
    entry.real = real
    entry.files = files
    if (!isWithin(this.#root, real)) throw linkLeadsOut(this.#root, file)
    // From the first change on, what is new belongs to a generation too: else it would import the first instances.
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
    for (const file of this.#filesOfFailuresAlone()) this.#stale.add(file)
    if (this.#stale.size > 0) {
      await this.#announce(this.#generation + 1, [...this.#stale])
      const { cache } = createRequire(import.meta.url)
      for (const file of this.#stale) delete cache[file]
      this.#stale.clear()
    }
    for (const [file, entry] of renewed) if (this.#entries.get(file) === entry) this.#entries.delete(file)
    return renewed.map(([file]) => relative(this.#root, file).split(sep).join('/'))
  }

  /** Whether a located module changed, imports what changed, or its path leads to another file now. */
  async #isStale(file: string, { real }: Entry): Promise<boolean> {
    if (real === '') return false
    return this.#stale.has(real) || real !== (await realpath(file).catch(() => undefined))
  }

  /** Node keeps a failure as it keeps a module: what only failed modules import gets a second chance with them. */
  #filesOfFailuresAlone(): Set<string> {
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
 * What a module exports. Node gives `module.exports` of a CommonJS module as its default export, and as named ones the
 * names that it finds in the source without running it. So here every own name of `module.exports` is an export, and
 * the default is `exports.default` where there is one, as compilers write it, and `module.exports` is no function.
 *
 * @param namespace as `import()` gave it; that of an ES module is given back as it is
 * @param file its real path
 */
function exportsOf(namespace: ModuleNamespace, file: string): ModuleNamespace {
  const whole = namespace['default']
  if (whole === null || (typeof whole !== 'object' && typeof whole !== 'function')) return namespace
  // Node names a CommonJS module by this export from version 23 on; before, such a module is known by its cache alone.
  const ofCommonJs = namespace['module.exports'] ?? createRequire(import.meta.url).cache[file]?.exports
  if (whole !== ofCommonJs) return namespace
  const members = whole as Readonly<Record<string, unknown>> // An object or a function may have any.
  const exported = Object.fromEntries(Object.keys(members).map((name) => [name, members[name]]))
  if (typeof whole === 'function' || !Object.hasOwn(members, 'default')) return { ...exported, default: whole }
  return { ...exported, default: members['default'] }
}
