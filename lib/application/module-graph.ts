/**
 * Knows which files a module imports, directly and by way of others, and which of them changed on disk.
 *
 * Surprise: what is read from a source are literal paths. A computed path, a package (even one below the root) and a
 * file that is read rather than imported are not seen: a change in them renews nothing. And where a module imports a
 * symbolic link that leads elsewhere now, the module is renewed, but Node remembers where the link led.
 */
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isUnchanged, settledMs, type FileVersion } from '../storage/file-version.ts'
import { importSpecifiers } from '../javascript/modules.ts'

/** A module file with what it imports. All paths are real paths: without symbolic links. */
export interface ModuleTrace {
  readonly real: string
  /** The file itself and the files below the root that it imports, directly and by way of others. */
  readonly files: ReadonlySet<string>
  /** Those of `files` that were not known before. */
  readonly added: readonly string[]
}

/** What is known of a file. `targets` has a place for each specifier: the file below the root, or undefined. */
interface Node {
  /** Undefined: the file is not there. */
  version: FileVersion | undefined
  settled: boolean
  hash: string
  specifiers: readonly string[]
  targets: readonly (string | undefined)[]
}

/** What one call looked up: the real path of the root, and by path those of files, undefined for what is no file. */
interface Lookups {
  readonly root: string
  readonly files: Map<string, string | undefined>
}

/** The name as written is Node's `import`; the rest is what `require` tries, with the TypeScript ones. */
const endings = ['', '.js', '.json', '.cjs', '.ts', '.cts', '/index.js', '/index.json', '/index.cjs', '/index.ts']
const hasImports = /\.[cm]?[jt]s$/
/** Looking at one file takes some 10 us, of which requests should not wait for too many. */
const filesInOneTurn = 100

/**
 * The files that modules below one folder import. It looks at files synchronously, as Node's own loader does: that is
 * several times faster. Its methods must not be called while a refresh is under way.
 */
export class ModuleGraph {
  readonly #root: string
  readonly #nodes = new Map<string, Node>()
  /** Changed files that no call has returned yet: a refresh that fails must not forget them. */
  readonly #pending = new Set<string>()

  /** @param root absolute path of the folder outside of which imports are not followed */
  constructor(root: string) {
    this.#root = root
  }

  /**
   * Follows the imports of `file` (an absolute path). Files that are known already are taken as they were when last
   * looked at; they are never forgotten.
   *
   * @throws the error of `node:fs` when the file, or one it imports, cannot be read
   */
  trace(file: string): ModuleTrace {
    const real = realpathSync.native(file)
    const added: string[] = []
    return { real, files: this.#reach(real, this.#lookups(), added), added }
  }

  /**
   * Looks at every known file again. Returns the files whose content or imported files are others than before, those
   * that import them, directly and by way of others, and those that were not known.
   *
   * @throws the error of `node:fs` when a file that is there cannot be read
   */
  async refresh(): Promise<ReadonlySet<string>> {
    const lookups = this.#lookups()
    for (const [index, [file, node]] of [...this.#nodes].entries()) {
      if (index % filesInOneTurn === 0) await setImmediate()
      if (this.#update(file, node, lookups)) this.#pending.add(file)
    }
    const added: string[] = []
    for (const file of this.#pending) this.#reach(file, lookups, added)
    const changed = new Set([...this.#pending, ...added])
    this.#pending.clear()
    const importers = this.#importers()
    for (const file of changed) for (const importer of importers.get(file) ?? []) changed.add(importer)
    return changed
  }

  /** The file with all that it imports. Those not known yet are read and added to `added`. */
  #reach(file: string, lookups: Lookups, added: string[]): Set<string> {
    const files = new Set([file])
    for (const one of files) {
      if (!this.#nodes.has(one)) {
        const node: Node = { version: undefined, settled: false, hash: '', specifiers: [], targets: [] }
        this.#update(one, node, lookups)
        this.#nodes.set(one, node)
        added.push(one)
      }
      for (const target of this.#targets(one)) files.add(target)
    }
    return files
  }

  /** Brings a node up to date with the disk. Tells whether something changed. */
  #update(file: string, node: Node, lookups: Lookups): boolean {
    const contentChanged = updateContent(file, node)
    const targets = node.specifiers.map((specifier) => findTarget(specifier, file, lookups))
    const targetsChanged = targets.some((target, index) => target !== node.targets[index])
    node.targets = targets
    return contentChanged || targetsChanged
  }

  #lookups(): Lookups {
    return { root: unlessMissing(() => realpathSync.native(this.#root)) ?? this.#root, files: new Map() }
  }

  #targets(file: string): string[] {
    return this.#nodes.get(file)?.targets.filter((target) => target !== undefined) ?? []
  }

  #importers(): Map<string, string[]> {
    const importers = new Map<string, string[]>()
    for (const file of this.#nodes.keys()) {
      for (const target of this.#targets(file)) {
        const known = importers.get(target)
        if (known === undefined) importers.set(target, [file])
        else known.push(file)
      }
    }
    return importers
  }
}

/** Reads the file where it has changed, or is so young that it may have. A file that is gone has the empty content. */
function updateContent(file: string, node: Node): boolean {
  const now = statSync(file, { throwIfNoEntry: false })
  const { version } = node
  const isAsBefore = now === undefined || version === undefined ? now === version : isUnchanged(version, now)
  if (isAsBefore && node.settled) return false
  const readAtMs = Date.now()
  const content = now === undefined ? undefined : unlessMissing(() => readFileSync(file))
  const hash = content === undefined ? '' : createHash('sha256').update(content).digest('base64')
  node.version = now
  node.settled = now === undefined || readAtMs - now.ctimeMs > settledMs
  if (hash === node.hash) return false
  node.hash = hash
  node.specifiers =
    content !== undefined && hasImports.test(file)
      ? [...new Set(importSpecifiers(content.toString('utf8')).map((one) => one.specifier))]
      : []
  return true
}

/** The file below the root that `specifier` means in the module `from`, or undefined. */
function findTarget(specifier: string, from: string, { root, files }: Lookups): string | undefined {
  const path = specifierPath(specifier, from)
  if (path === undefined) return undefined
  for (const ending of endings) {
    const candidate = path + ending
    if (!files.has(candidate)) files.set(candidate, realFile(candidate))
    const real = files.get(candidate)
    if (real !== undefined) return real.startsWith(root === sep ? sep : root + sep) ? real : undefined
  }
  return undefined
}

/** The absolute path that a specifier names, without its query; undefined for a package and what is malformed. */
function specifierPath(specifier: string, from: string): string | undefined {
  const isUrl = specifier.startsWith('file:')
  if (!isUrl && !/^(?:\.{1,2}(?:\/|$)|\/)/.test(specifier)) return undefined
  const [plain = ''] = specifier.split(/[?#]/, 1)
  try {
    return isUrl ? fileURLToPath(plain) : resolve(dirname(from), decodeURIComponent(plain))
  } catch {
    return undefined
  }
}

/** The real path of a file. What cannot be looked up counts as not there: it may be no path that is imported. */
function realFile(path: string): string | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() === true ? realpathSync.native(path) : undefined
  } catch {
    return undefined
  }
}

/** What `look` gives, or undefined when it fails since something is not there. */
function unlessMissing<Result>(look: () => Result): Result | undefined {
  try {
    return look()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
