/**
 * The views of an application: finds, compiles, keeps and renders them.
 *
 * The versions (times, size, inode) of a view's files are looked at in every turn of the event loop in which it is
 * rendered, so a change is seen in the next one. While a file is young its contents are compared: the file system's
 * clock is coarse, and a second change within one of its steps leaves the version as it was.
 */

import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { isUnchanged, settledMs, type FileVersion } from '../storage/file-version.ts'
import { isWithin } from '../storage/paths.ts'
import { currentTurn } from '../storage/turn.ts'
import { compile } from './compile.ts'
import { createDiskCache, sha256 } from './disk-cache.ts'
import type { DiskCache, Entry } from './disk-cache.ts'
import { ViewError } from './errors.ts'
import { createRender } from './render.ts'
import type { Render } from './render.ts'
import { findView, versionOf } from './resolve.ts'

export interface Views {
  /**
   * Renders a view. `file` is relative to the root, or else to the folder of `from`, the file of the action that asks
   * (absolute, or relative to the root). Names in the view mean `data` first, then `helpers`.
   * @throws ViewError
   */
  render(file: string, data: Readonly<Record<string, unknown>>, helpers: object, from?: string): string
  /**
   * Compiles a view and does not render it.
   * @throws ViewError
   */
  check(file: string, from?: string): void
  /** Deletes the compiled views on disk, `.hrb` and `__*.prg` alone. Those in memory stay. */
  clear(): { deleted: number; path: string }
  /** Renders and checks that found a usable compiled view, in memory or on disk. */
  readonly hits: number
  /** Renders and checks that had to compile. */
  readonly misses: number
}

export interface ViewsOptions {
  /** The application's root, absolute. No view outside it is read. */
  readonly root: string
  /** `paths.cache`; compiled views are in `views` in it. */
  readonly cacheFolder: string
  /** Whether to keep compiled views in memory. */
  readonly ram: boolean
  /** Whether to keep compiled views on disk. */
  readonly disk: boolean
  /** Whether to write readable sources to disk too. */
  readonly readable: boolean
  /** The server's version. */
  readonly version: string
  /** Is told what is wrong with the disk cache. Views are served all the same. */
  readonly onProblem: (message: string) => void
}

/** Views kept in memory, by the name they are asked for; past that the oldest is dropped. */
const maxKept = 1000

/** A file that a view was made of. */
interface Dependency {
  readonly path: string
  readonly version: FileVersion
  readonly hash: string
}

interface Kept {
  readonly render: Render
  readonly dependencies: readonly Dependency[]
  /** Absolute paths where nothing may appear. */
  readonly absent: readonly string[]
  /** Whether the versions alone tell that nothing changed. */
  settled: boolean
  /** The turn in which they were last looked at, once settled. */
  seenIn: number
}

/** Makes the views of one application. Touches no file yet. */
export function createViews(options: ViewsOptions): Views {
  return new ViewCache(options)
}

class ViewCache implements Views {
  readonly #root: string
  readonly #disk: DiskCache
  readonly #useDisk: boolean
  readonly #useRam: boolean
  readonly #kept = new Map<string, Kept>()
  #hits = 0
  #misses = 0

  constructor({ root, cacheFolder, ram, disk, readable, version, onProblem }: ViewsOptions) {
    this.#root = resolve(root)
    this.#useRam = ram
    this.#useDisk = disk
    this.#disk = createDiskCache({ folder: resolve(cacheFolder, 'views'), version, readable, onProblem })
  }

  get hits(): number {
    return this.#hits
  }

  get misses(): number {
    return this.#misses
  }

  render(file: string, data: Readonly<Record<string, unknown>>, helpers: object, from?: string): string {
    return this.#get(file, from).render(data, helpers)
  }

  check(file: string, from?: string): void {
    this.#get(file, from)
  }

  clear(): { deleted: number; path: string } {
    return this.#disk.clear()
  }

  #get(file: string, from: string | undefined): Kept {
    const key = from === undefined ? file : `${file}\0${from}`
    const kept = this.#kept.get(key)
    if (kept !== undefined && isCurrent(kept)) {
      this.#hits++
      return kept
    }
    this.#kept.delete(key)
    const asker = { file, line: 0 }
    const folders = from === undefined ? [''] : ['', dirname(relative(this.#root, resolve(this.#root, from)))]
    const found = findView(this.#root, file, folders, asker)
    const made = this.#load(found.file, found.absent)
    if (this.#useRam) this.#keep(key, made)
    return made
  }

  #keep(key: string, made: Kept): void {
    const oldest = this.#kept.keys().next()
    if (this.#kept.size === maxKept && oldest.done !== true) this.#kept.delete(oldest.value)
    this.#kept.set(key, made)
  }

  /** Takes a view from disk, or compiles it. `absent` is where it was looked for before it was found. */
  #load(file: string, absent: readonly string[]): Kept {
    const fromDisk = this.#useDisk ? this.#fromDisk(file) : undefined
    if (fromDisk !== undefined) {
      this.#hits++
      return this.#make(fromDisk.entry, fromDisk.files, absent)
    }
    this.#misses++
    const files = new Map<string, Dependency>()
    const program = compile(this.#root, file, (name) => this.#read(name, files))
    const dependencies = [...files.values()]
    const entry = { program, hashes: dependencies.map(({ hash }) => hash) }
    const made = this.#make(entry, dependencies, absent)
    if (this.#useDisk) this.#disk.write(file, entry)
    return made
  }

  /** An entry whose files are as they were; with it, the files as they are. */
  #fromDisk(file: string): { entry: Entry; files: readonly Dependency[] } | undefined {
    const entry = this.#disk.read(file)
    if (entry === undefined) return undefined
    const files = new Map<string, Dependency>()
    try {
      for (const [index, name] of entry.program.files.entries()) {
        if (!isWithin(this.#root, join(this.#root, name))) return undefined
        this.#read(name, files)
        if (files.get(name)?.hash !== entry.hashes[index]) return undefined
      }
      if (entry.program.absent.some((name) => versionOf(join(this.#root, name)) !== undefined)) return undefined
    } catch {
      // A file that is gone or cannot be read: compiling tells which, and where it is asked for.
      return undefined
    }
    return { entry, files: [...files.values()] }
  }

  #make({ program }: Entry, dependencies: readonly Dependency[], absent: readonly string[]): Kept {
    const places = [...absent, ...program.absent].map((name) => join(this.#root, name))
    return { render: createRender(program), dependencies, absent: places, settled: false, seenIn: -1 }
  }

  /** Reads a file and notes it. The version is taken first, so that a change while reading shows. */
  #read(name: string, files: Map<string, Dependency>): string {
    const path = join(this.#root, name)
    try {
      const version = versionOf(path)
      if (version === undefined) throw new Error('it is gone')
      const text = readFileSync(path, 'utf8')
      files.set(name, { path, version, hash: sha256(text) })
      return text
    } catch (error) {
      throw new ViewError(name, 0, `cannot read the view: ${(error as Error).message}`, { cause: error })
    }
  }
}

/** Whether a kept view is what compiling it now would give. */
function isCurrent(kept: Kept): boolean {
  const turn = currentTurn()
  if (kept.seenIn === turn) return true
  try {
    for (const { path, version } of kept.dependencies) {
      const now = versionOf(path)
      if (now === undefined || !isUnchanged(version, now)) return false
    }
    for (const path of kept.absent) if (versionOf(path) !== undefined) return false
    if (!kept.settled) {
      const nowMs = Date.now()
      for (const { path, hash } of kept.dependencies) if (sha256(readFileSync(path, 'utf8')) !== hash) return false
      kept.settled = kept.dependencies.every(({ version }) => nowMs - version.ctimeMs > settledMs)
    }
    kept.seenIn = turn
    return true
  } catch {
    // A file that cannot be looked at: loading the view anew tells why.
    return false
  }
}
