/**
 * Watches folders, and those below them, for files that are saved, renamed or removed.
 *
 * Each folder is watched by itself, by the names in it, so it does not matter whether an editor writes into a file or
 * puts another in its place. When a folder comes or goes, all are looked for again; what is in a new one counts as
 * saved. While a folder is missing, the nearest one above it is watched in its place.
 */
import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { reasonOf } from '../base/reason.ts'

/** What is watched, and who is told. All paths are absolute. */
interface FolderWatchOptions {
  /** Watched with the folders below them; the most important first. */
  readonly trees: readonly string[]
  /** Watched without the folders below them. */
  readonly flat: readonly string[]
  /** Folders that are left out. So are `node_modules` and those whose name begins with a dot. */
  readonly excluded: ReadonlySet<string>
  /** Whether a file counts. */
  readonly isWanted: (path: string) => boolean
  /** Called with files that have changed and folders that are gone; not again before it has resolved. */
  readonly onChange: (paths: readonly string[]) => Promise<void>
  readonly warn: (message: string) => void
}

/** Changes are told when there was none for `quietMs`, or after `mostMs`, both in milliseconds. */
const quietMs = 25
const mostMs = 250
const foldersInOneTurn = 100

/** Watches until it is closed. */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #watched = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>()
  readonly #changed = new Set<string>()
  readonly #warned = new Set<string>()
  /** Whether a folder was made or removed, so that the folders must be looked for again. */
  #mustLook = false
  #timer: NodeJS.Timeout | undefined
  #waitsSinceMs = 0
  #isBusy = false
  #isClosed = false

  constructor(options: FolderWatchOptions) {
    this.#options = options
  }

  /** Begins. Resolves when every folder that is there is watched. */
  async open(): Promise<void> {
    await this.#look()
    this.#changed.clear()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watched.values()) watcher.close()
  }

  /** Watches every folder that is there, and ends what is watched elsewhere. */
  async #look(): Promise<void> {
    const { trees, flat, excluded, isWanted } = this.#options
    const found = new Set(trees)
    const missing: string[] = []
    let folders = 0
    for (const folder of found) {
      folders += 1
      if (folders % foldersInOneTurn === 0) await setImmediate()
      const state = this.#watch(folder)
      if (state === 'missing') missing.push(folder)
      else for (const entry of this.#read(folder)) {
        const path = join(folder, entry.name)
        if (entry.isDirectory()) {
          if (entry.name !== 'node_modules' && !entry.name.startsWith('.') && !excluded.has(path)) found.add(path)
        } else if (state === 'new' && isWanted(path)) this.#changed.add(path)
      }
    }
    for (let folder of [...flat, ...missing]) {
      while (this.#watch(folder) === 'missing' && folder !== dirname(folder)) folder = dirname(folder)
      found.add(folder)
    }
    for (const folder of this.#watched.keys()) if (!found.has(folder) || this.#isClosed) this.#forget(folder)
  }

  #watch(folder: string): 'missing' | 'known' | 'new' {
    const inode = inodeOf(folder)
    const known = this.#watched.get(folder)
    if (known !== undefined && known.inode !== inode) this.#forget(folder)
    if (inode === undefined) return 'missing'
    if (known?.inode === inode) return 'known'
    try {
      const watcher = watch(folder, (event, name) => this.#noticed(folder, event, name ?? ''))
      watcher.on('error', (error) => this.#cannot(error))
      this.#watched.set(folder, { watcher, inode })
      return 'new'
    } catch (error) {
      this.#cannot(error)
      return 'known'
    }
  }

  #forget(folder: string): void {
    this.#watched.get(folder)?.watcher.close()
    this.#watched.delete(folder)
    this.#changed.add(folder)
  }

  #read(folder: string) {
    try {
      return readdirSync(folder, { withFileTypes: true })
    } catch (error) {
      this.#cannot(error)
      return []
    }
  }

  #noticed(folder: string, event: string, name: string): void {
    if (this.#isClosed) return
    const path = join(folder, name)
    // The end of a folder is told with its own name. Another may be there already, even with the same inode.
    const isEnd = event === 'rename' && name === basename(folder)
    if (isEnd) this.#forget(folder)
    if (isEnd || (event === 'rename' && inodeOf(path) !== this.#watched.get(path)?.inode)) this.#mustLook = true
    if (this.#options.isWanted(path)) this.#changed.add(path)
    if (this.#mustLook || this.#changed.size > 0) this.#schedule()
  }

  #schedule(): void {
    const nowMs = performance.now()
    if (this.#timer === undefined) this.#waitsSinceMs = nowMs
    clearTimeout(this.#timer)
    const waitMs = Math.max(0, Math.min(quietMs, this.#waitsSinceMs + mostMs - nowMs))
    this.#timer = setTimeout(() => void this.#tell(), waitMs)
  }

  async #tell(): Promise<void> {
    this.#timer = undefined
    if (this.#isBusy) return
    this.#isBusy = true
    if (this.#mustLook) {
      this.#mustLook = false
      await this.#look()
    }
    const paths = [...this.#changed]
    this.#changed.clear()
    if (paths.length > 0 && !this.#isClosed) await this.#options.onChange(paths)
    this.#isBusy = false
    if ((this.#mustLook || this.#changed.size > 0) && !this.#isClosed) this.#schedule()
  }

  /** Warns once of each kind of error. */
  #cannot(error: unknown): void {
    const { code = '' } = error as NodeJS.ErrnoException // What node:fs throws.
    if (code === 'ENOENT' || code === 'ENOTDIR' || this.#warned.has(code)) return
    this.#warned.add(code)
    const advice = 'after a change that is not noticed reload with SIGHUP or /svc-routes/reload'
    this.#options.warn(`Cannot watch every folder: ${reasonOf(error)}; ${advice}`)
  }
}

/** The number of a folder; undefined for what is none, or cannot be looked at. */
function inodeOf(path: string): number | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isDirectory() === true ? stats.ino : undefined
  } catch {
    return undefined
  }
}
