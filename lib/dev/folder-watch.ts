/**
 * Watches folders, and those below them, for files that are saved, renamed or removed.
 *
 * Each folder is watched by itself, by the names in it, so it does not matter whether an editor writes into a file or
 * puts another in its place. A folder that is made later is watched from then on, and what is in it then counts as
 * saved. For a folder that is missing, the nearest one above it is watched until it is there.
 */
import { readdirSync, statSync, watch, type FSWatcher } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { reasonOf } from '../base/reason.ts'

/** What is watched, and who is told. */
export interface FolderWatchOptions {
  /** Absolute paths, the most important first: of too many files the last ones are left out. */
  readonly trees: readonly string[]
  /** Folders that are watched without those below them. */
  readonly flat: readonly string[]
  /** Folders that are not watched, absolute. Neither are `node_modules` and those whose name begins with a dot. */
  readonly excluded: ReadonlySet<string>
  /** Whether a file counts. */
  readonly isWanted: (path: string) => boolean
  /**
   * Called with the files that have changed, and with folders that are gone, once it is quiet; again when it has
   * resolved. It must not reject.
   */
  readonly onChange: (paths: readonly string[]) => Promise<void>
  readonly warn: (message: string) => void
}

/** It is quiet when nothing has changed for so long, and that is waited for at most so long, in milliseconds. */
const quietMs = 25
const mostMs = 250
/** Past so many files and folders, folders that were found are watched, and those below them are not looked for. */
const mostEntries = 100_000
const mostFolders = 10_000
const foldersInOneTurn = 100

interface Watched {
  readonly watcher: FSWatcher
  readonly inode: number
}

/** Watches until it is closed. */
export class FolderWatch {
  readonly #options: FolderWatchOptions
  readonly #watched = new Map<string, Watched>()
  readonly #changed = new Set<string>()
  readonly #warned = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #waitsSinceMs = 0
  #isBusy = false
  #isClosed = false

  constructor(options: FolderWatchOptions) {
    this.#options = options
  }

  /** Begins. Resolves when everything that is there is watched. */
  async open(): Promise<void> {
    for (const folder of this.#options.flat) this.#watchOrWait(folder)
    await this.#watchTrees(this.#options.trees, false)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const { watcher } of this.#watched.values()) watcher.close()
    this.#watched.clear()
  }

  /** @param isNew whether the files in it count as saved */
  async #watchTrees(roots: readonly string[], isNew: boolean): Promise<void> {
    const queue = new Set(roots)
    let left = mostEntries
    let done = 0
    for (const folder of queue) {
      if ((done += 1) % foldersInOneTurn === 0) await setImmediate()
      if (this.#isClosed || !this.#watchOrWait(folder)) continue
      if (left <= 0 || queue.size > mostFolders) {
        const many = `${roots.at(-1)} has more than ${mostEntries} files or ${mostFolders} folders`
        this.#warnOnce('many', `${many}: those far below are not watched`)
        continue
      }
      for (const entry of this.#read(folder)) {
        left -= 1
        const path = join(folder, entry.name)
        if (!entry.isDirectory()) this.#note(path, isNew)
        else if (!this.#isExcluded(path)) queue.add(path)
      }
    }
  }

  /** Watches a folder; where it is missing, the nearest one above it. Returns whether it is there. */
  #watchOrWait(folder: string): boolean {
    let path = folder
    while (!this.#watch(path) && path !== dirname(path)) path = dirname(path)
    return path === folder
  }

  #watch(folder: string): boolean {
    const inode = inodeOf(folder)
    const known = this.#watched.get(folder)
    if (inode === undefined || known?.inode === inode) return inode !== undefined
    known?.watcher.close()
    try {
      const watcher = watch(folder, (event, name) => this.#noticed(folder, event, name))
      watcher.on('error', (error) => this.#cannot(error))
      this.#watched.set(folder, { watcher, inode })
    } catch (error) {
      this.#cannot(error)
    }
    return true
  }

  #read(folder: string) {
    try {
      return readdirSync(folder, { withFileTypes: true })
    } catch (error) {
      this.#cannot(error)
      return []
    }
  }

  #isExcluded(folder: string): boolean {
    const name = basename(folder)
    return name === 'node_modules' || name.startsWith('.') || this.#options.excluded.has(folder)
  }

  #noticed(folder: string, event: string, name: string | null): void {
    if (this.#isClosed) return
    const path = name === null ? folder : join(folder, name)
    this.#note(path, true)
    if (event !== 'rename') return
    for (const each of [folder, path]) {
      const known = this.#watched.get(each)
      if (known !== undefined && known.inode !== inodeOf(each)) this.#lost(each)
    }
    if (!this.#watched.has(path) && inodeOf(path) !== undefined) void this.#found(path)
  }

  /** A folder is gone, or another is in its place: what was below it has to be watched anew. */
  #lost(folder: string): void {
    for (const [path, { watcher }] of this.#watched) {
      if (path !== folder && !path.startsWith(folder + sep)) continue
      watcher.close()
      this.#watched.delete(path)
    }
    this.#changed.add(folder)
    this.#schedule()
    void this.#found(folder)
  }

  /** Watches a folder that has come, or gone, where it is below a tree, or is what a tree waits for. */
  async #found(folder: string): Promise<void> {
    const { trees, flat } = this.#options
    const waits = (one: string): boolean => one === folder || one.startsWith(folder + sep)
    for (const each of flat.filter(waits)) this.#watchOrWait(each)
    const isInTree = trees.some((tree) => folder.startsWith(tree + sep)) && !this.#isExcluded(folder)
    await this.#watchTrees([...trees.filter(waits), ...(isInTree ? [folder] : [])], true)
  }

  #note(path: string, isSaved: boolean): void {
    if (!isSaved || !this.#options.isWanted(path)) return
    this.#changed.add(path)
    this.#schedule()
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
    const paths = [...this.#changed]
    this.#changed.clear()
    this.#isBusy = true
    await this.#options.onChange(paths)
    this.#isBusy = false
    if (this.#changed.size > 0 && !this.#isClosed) this.#schedule()
  }

  #cannot(error: unknown): void {
    const { code = '' } = error as NodeJS.ErrnoException // What node:fs throws.
    if (code !== 'ENOENT' && code !== 'ENOTDIR') this.#warnOnce(code, reasonOf(error))
  }

  #warnOnce(kind: string, problem: string): void {
    if (this.#warned.has(kind)) return
    this.#warned.add(kind)
    const advice = 'after a change that is not noticed reload by hand, with SIGHUP or /svc-routes/reload'
    this.#options.warn(`Cannot watch all files: ${problem}; ${advice}`)
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
