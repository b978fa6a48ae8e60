/**
 * The views of an application: finds, compiles, keeps and renders them.
 *
 * The versions (times, size, inode) of a view's files are checked in every turn of the event loop that renders it, so a
 * change shows in the next turn. While a file is young its contents are compared too: file system timestamps are
 * coarse, and a second change within the same tick leaves the version as it was.
 */

import { dirname, join, relative, resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { isSettled, isUnchanged, type FileVersion } from '../files/file-version.ts'
import { currentTurn } from '../files/turn.ts'
import { compile, type Program } from './compile.ts'
import { DiskCache, sha256 } from './disk-cache.ts'
import { createRender, type Render } from './render.ts'
import { findView } from './resolve.ts'
import { ViewError } from './template.ts'
import { filesOnDisk, type ViewFiles } from './view-files.ts'

/** Where views are found, and where compiled ones are kept. */
export interface ViewsOptions {
  /** The application's root, absolute. No view outside it is read. */
  readonly root: string
  /** `paths.cache`; compiled views are in its folder `views`. */
  readonly cacheFolder: string
  /** Whether to keep compiled views in memory. */
  readonly ram: boolean
  /** Whether to keep compiled views on disk. */
  readonly disk: boolean
  /** Whether to write readable sources to disk too. */
  readonly readable: boolean
  /** The server's version. */
  readonly version: string
  /** Where the views are; the file system unless given. */
  readonly files?: ViewFiles
  /** Called with what is wrong with the disk cache. Views are served all the same. */
  readonly onProblem: (message: string) => void
}

/** The most views kept in memory; past that all are dropped, and those in use are loaded from disk again. */
const maxKept = 1000

/** A file that a view was compiled from. */
interface Dependency {
  readonly path: string
  readonly version: FileVersion
  readonly hash: string
}

/** A program with its files, in the same order. */
interface Compiled {
  readonly program: Program
  readonly dependencies: readonly Dependency[]
}

interface Kept {
  readonly render: Render
  readonly dependencies: readonly Dependency[]
  /** Absolute paths of missing files that would change the view if they appeared. */
  readonly absent: readonly string[]
  /** Whether the versions are enough to detect a change. */
  settled: boolean
  /** The turn in which the view was last found up to date. */
  checkedIn: number
}

/** The views of one application. The constructor touches no file. */
export class Views {
  readonly #root: string
  readonly #files: ViewFiles
  readonly #disk: DiskCache
  readonly #useDisk: boolean
  readonly #useRam: boolean
  /** By the file of the action that renders, then by the view's name. */
  readonly #kept = new Map<string, Map<string, Kept>>()
  #keptCount = 0
  /** Renders and checks that found a usable compiled view, in memory or on disk. */
  hits = 0
  /** Renders and checks that had to compile. */
  misses = 0

  constructor({ root, cacheFolder, ram, disk, readable, version, files = filesOnDisk, onProblem }: ViewsOptions) {
    this.#root = resolve(root)
    this.#files = files
    this.#useRam = ram
    this.#useDisk = disk
    this.#disk = new DiskCache(resolve(cacheFolder, 'views'), version, readable, onProblem)
  }

  /**
   * Renders a view. Names in the view resolve to `data` first, then to `helpers`.
   * @param file relative to the root, or else to the folder of `from`
   * @param from the file of the action that renders, absolute or relative to the root
   * @throws ViewError
   */
  render(file: string, data: Readonly<Record<string, unknown>>, helpers: object, from?: string): string {
    return this.#get(file, from).render(data, helpers)
  }

  /**
   * Compiles a view without rendering it; takes the parameters of `render`.
   * @throws ViewError
   */
  check(file: string, from?: string): void {
    this.#get(file, from)
  }

  /** Deletes the compiled views on disk: only `.hrb` and `__*.prg` files. Those in memory stay. */
  clear(): { deleted: number; path: string } {
    return this.#disk.clear()
  }

  #get(file: string, from = ''): Kept {
    const kept = this.#kept.get(from)?.get(file)
    if (kept !== undefined && isCurrent(kept, this.#root, this.#files)) {
      this.hits++
      return kept
    }
    const folders = from === '' ? [''] : ['', dirname(relative(this.#root, resolve(this.#root, from)))]
    const found = findView(this.#root, file, folders, { file, line: 0 }, this.#files)
    const made = this.#load(found.file, found.absent)
    if (this.#useRam) this.#keep(file, from, made)
    return made
  }

  #keep(file: string, from: string, made: Kept): void {
    if (this.#keptCount === maxKept) {
      this.#kept.clear()
      this.#keptCount = 0
    }
    const views = this.#kept.get(from) ?? new Map<string, Kept>()
    this.#kept.set(from, views)
    if (!views.has(file)) this.#keptCount += 1
    views.set(file, made)
  }

  /** Loads a view from disk, or compiles it. `absent` are the paths that were searched before it was found. */
  #load(file: string, absent: readonly string[]): Kept {
    const stored = this.#useDisk ? this.#fromDisk(file) : undefined
    if (stored === undefined) this.misses++
    else this.hits++
    const { program, dependencies } = stored ?? this.#compile(file)
    const render = createRender(program)
    if (stored === undefined && this.#useDisk) {
      this.#disk.write(file, { program, hashes: dependencies.map(({ hash }) => hash) })
    }
    const places = [...absent, ...program.absent].map((name) => join(this.#root, name))
    return { render, dependencies, absent: places, settled: false, checkedIn: -1 }
  }

  #compile(file: string): Compiled {
    const dependencies: Dependency[] = []
    const program = compile(this.#root, file, (name) => {
      const { text, dependency } = this.#read(name)
      dependencies.push(dependency)
      return text
    }, this.#files)
    return { program, dependencies }
  }

  /** The view as stored on disk, if none of its files has changed since. */
  #fromDisk(file: string): Compiled | undefined {
    const entry = this.#disk.read(file)
    if (entry === undefined) return undefined
    const { program, hashes } = entry
    const dependencies: Dependency[] = []
    try {
      for (const [index, name] of program.files.entries()) {
        const { dependency } = this.#read(name)
        if (dependency.hash !== hashes[index]) return undefined
        dependencies.push(dependency)
      }
      if (program.absent.some((name) => this.#files.versionOf(join(this.#root, name)) !== undefined)) return undefined
    } catch {
      return undefined // A file is missing or unreadable: compiling names it in its error, with the line that needs it.
    }
    return { program, dependencies }
  }

  /** Reads a file of the application. Its version is taken first, so that a change during the read is detected. */
  #read(name: string): { text: string; dependency: Dependency } {
    const path = join(this.#root, name)
    try {
      const { text, version } = this.#files.read(this.#root, path)
      return { text, dependency: { path, version, hash: sha256(text) } }
    } catch (error) {
      throw new ViewError(name, 0, `cannot read the view: ${reasonOf(error)}`, { cause: error })
    }
  }
}

/** Whether compiling a kept view now would give the same result. */
function isCurrent(kept: Kept, root: string, { versionOf, read }: ViewFiles): boolean {
  const turn = currentTurn()
  if (kept.checkedIn === turn) return true
  try {
    for (const { path, version } of kept.dependencies) {
      const now = versionOf(path)
      if (now === undefined || !isUnchanged(version, now)) return false
    }
    for (const path of kept.absent) if (versionOf(path) !== undefined) return false
    if (!kept.settled) {
      const nowMs = Date.now()
      for (const { path, hash } of kept.dependencies) if (sha256(read(root, path).text) !== hash) return false
      kept.settled = kept.dependencies.every(({ version }) => isSettled(version, nowMs))
    }
    kept.checkedIn = turn
    return true
  } catch {
    return false // A file cannot be read: loading the view again reports why.
  }
}
