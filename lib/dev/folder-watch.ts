/**
 * Watches folders, and those below them, for files that are saved, renamed or removed.
 *
 * Each folder is watched separately, by the names in it, so it does not matter whether an editor writes to a file or
 * replaces it. When a folder is created or removed, all are scanned again; files in a new one count as saved. While a
 * folder is missing, its nearest existing ancestor is watched instead.
 */
import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { reasonOf } from '../base/reason.ts'

/** What to watch, and the callbacks. All paths are absolute. */
interface FolderWatchOptions {
  /** Watched with the folders below them; the most important first. */
  readonly trees: readonly string[]
  /** Watched without the folders below them. */
  readonly flat: readonly string[]
  /** Folders to skip, as are `node_modules` and those whose name begins with a dot. */
  readonly excluded: ReadonlySet<string>
  /** Whether to report a file. */
  readonly isWanted: (path: string) => boolean
  /** Called with changed files and removed folders; not again before it has resolved. */
  readonly onChange: (paths: readonly string[]) => Promise<void>
  readonly warn: (message: string) => void
}

/** Changes are reported after `quietMs` without another one, or after `maxDelayMs`, both in milliseconds. */
const quietMs = 25
const maxDelayMs = 250
const foldersPerTurn = 100

/** Watches until closed. */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #watched = new Map<string, { readonly watcher: FSWatcher; readonly inode: number }>()
  readonly #changed = new Set<string>()
  readonly #warned = new Set<string>()
  /** Whether a folder was created or removed, so that the folders must be scanned again. */
  #mustScan = false
  #timer: NodeJS.Timeout | undefined
  #waitingSinceMs = 0
  #isBusy = false
  #isClosed = false

  constructor(options: FolderWatchOptions) {
    this.#options = options
  }

  /** Starts. Resolves when every existing folder is watched. */
  async open(): Promise<void> {
    await this.#scan()
    this.#changed.clear()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watched.values()) watcher.close()
  }

  /** Watches every existing folder, and stops watching any other. */
  async #scan(): Promise<void> {
    const { trees, flat, excluded, isWanted } = this.#options
    const found = new Set(trees)
    const missing: string[] = []
    let folders = 0
    for (const folder of found) {
      folders += 1
      if (folders % foldersPerTurn === 0) await setImmediate()
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
      const watcher = watch(folder, (event, name) => this.#onEvent(folder, event, name ?? ''))
      watcher.on('error', (error) => this.#warnOf(error))
      this.#watched.set(folder, { watcher, inode })
      return 'new'
    } catch (error) {
      this.#warnOf(error)
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
      this.#warnOf(error)
      return []
    }
  }

  #onEvent(folder: string, event: string, name: string): void {
    if (this.#isClosed) return
    const path = join(folder, name)
    // A removed folder is reported by its name. Another may already exist there, even with the same inode.
    const isRemoval = event === 'rename' && name === basename(folder)
    if (isRemoval) this.#forget(folder)
    if (isRemoval || (event === 'rename' && inodeOf(path) !== this.#watched.get(path)?.inode)) this.#mustScan = true
    if (this.#options.isWanted(path)) this.#changed.add(path)
    if (this.#mustScan || this.#changed.size > 0) this.#schedule()
  }

  #schedule(): void {
    const nowMs = performance.now()
    if (this.#timer === undefined) this.#waitingSinceMs = nowMs
    clearTimeout(this.#timer)
    const waitMs = Math.max(0, Math.min(quietMs, this.#waitingSinceMs + maxDelayMs - nowMs))
    this.#timer = setTimeout(() => void this.#report(), waitMs)
  }

  async #report(): Promise<void> {
    this.#timer = undefined
    if (this.#isBusy) return
    this.#isBusy = true
    if (this.#mustScan) {
      this.#mustScan = false
      await this.#scan()
    }
    const paths = [...this.#changed]
    this.#changed.clear()
    if (paths.length > 0 && !this.#isClosed) await this.#options.onChange(paths)
    this.#isBusy = false
    if ((this.#mustScan || this.#changed.size > 0) && !this.#isClosed) this.#schedule()
  }

  /** Warns once about each kind of error. */
  #warnOf(error: unknown): void {
    const { code = '' } = error as NodeJS.ErrnoException // What node:fs throws.
    if (code === 'ENOENT' || code === 'ENOTDIR' || this.#warned.has(code)) return
    this.#warned.add(code)
    const advice = 'after an undetected change, reload with SIGHUP or /svc-routes/reload'
    this.#options.warn(`Cannot watch every folder: ${reasonOf(error)}; ${advice}`)
  }
}

/** Returns the inode of a folder; undefined if it is not a folder or cannot be read. */
function inodeOf(path: string): number | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isDirectory() === true ? stats.ino : undefined
  } catch {
    return undefined
  }
}
