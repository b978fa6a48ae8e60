/**
 * Tracks which files a module imports, directly or indirectly, and which of them changed on disk.
 *
 * Surprise: only literal paths in a source are recognized. Computed paths, packages (even below the root) and files
 * that are read rather than imported are not tracked, so changing them reloads nothing. If a module imports a symbolic
 * link that has a new target, the module is reloaded, but Node remembers the old target.
 */
import { createHash } from 'node:crypto'
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { importSpecifiers } from './import-specifiers.ts'
import { realPathOf } from '../files/paths.ts'
import { serverName } from './module-hooks.ts'

/** A module file with its imports. All paths are real paths, without symbolic links. */
interface ModuleTrace {
  readonly real: string
  /** The file itself and the files below the root that it imports, directly or indirectly. */
  readonly files: ReadonlySet<string>
  /** Those of `files` that were not known before. */
  readonly added: readonly string[]
  /** Whether one of them imports the server. */
  readonly importsServer: boolean
}

/** A known file. For each specifier, `targets` has the file below the root, or undefined. */
interface Node {
  /** The hash of its content; empty if it cannot be read. */
  hash: string
  specifiers: readonly string[]
  targets: readonly (string | undefined)[]
}

/** The look-ups of one call: the real path of the root, and of files by path, undefined if there is no file. */
interface Lookups {
  readonly root: string
  readonly files: Map<string, string | undefined>
}

/** `import` uses the name as written; `require` tries the other endings, here including those of TypeScript. */
const endings = ['', '.js', '.json', '.cjs', '.ts', '.cts', '/index.js', '/index.json', '/index.cjs', '/index.ts']
const hasImports = /\.[cm]?[jt]s$/
/** The most files read without yielding to requests: each takes about 50 us. */
const filesInOneTurn = 100

/**
 * The files that modules below one folder import. Reads files synchronously, as Node's own loader does, which is
 * several times faster. No method may be called during a refresh.
 */
export class ModuleGraph {
  readonly #root: string
  readonly #nodes = new Map<string, Node>()

  /** @param root absolute path of the folder; imports outside it are not followed */
  constructor(root: string) {
    this.#root = root
  }

  /**
   * Follows the imports of `file` (an absolute path). Known files are not read again, and never removed.
   *
   * @throws the error of `node:fs` when the file does not exist
   */
  trace(file: string): ModuleTrace {
    const real = realpathSync.native(file)
    const added: string[] = []
    const files = this.#reach(real, this.#lookups(), added)
    const importsServer = [...files].some((one) => this.#nodes.get(one)?.specifiers.includes(serverName))
    return { real, files, added, importsServer }
  }

  /** The known files that may have imports, by their real paths. */
  modules(): readonly string[] {
    return [...this.#nodes.keys()].filter((file) => hasImports.test(file))
  }

  /** Whether a known file is this one, or below this folder. */
  has(path: string): boolean {
    return this.#nodes.has(path) || [...this.#nodes.keys()].some((file) => file.startsWith(path + sep))
  }

  /**
   * Checks every known file again.
   * @returns new files, files whose content or imports have changed, and the files that import them, directly or
   *   indirectly
   */
  async refresh(): Promise<ReadonlySet<string>> {
    const lookups = this.#lookups()
    const changed = new Set<string>()
    for (const [index, [file, node]] of [...this.#nodes].entries()) {
      if (index % filesInOneTurn === 0) await setImmediate()
      if (this.#update(file, node, lookups)) changed.add(file)
    }
    const added: string[] = []
    for (const file of changed) this.#reach(file, lookups, added)
    for (const file of added) changed.add(file)
    const importers = this.#importers()
    for (const file of changed) for (const importer of importers.get(file) ?? []) changed.add(importer)
    return changed
  }

  /** The file with all its imports. Reads new files and adds them to `added`. */
  #reach(file: string, lookups: Lookups, added: string[]): Set<string> {
    const files = new Set([file])
    for (const one of files) {
      if (!this.#nodes.has(one)) {
        const node: Node = { hash: '', specifiers: [], targets: [] }
        this.#update(one, node, lookups)
        this.#nodes.set(one, node)
        added.push(one)
      }
      for (const target of this.#targets(one)) files.add(target)
    }
    return files
  }

  /** Updates a node from disk. Returns whether it changed. */
  #update(file: string, node: Node, lookups: Lookups): boolean {
    const contentChanged = updateContent(file, node)
    const targets = node.specifiers.map((specifier) => findTarget(specifier, file, lookups))
    const targetsChanged = targets.some((target, index) => target !== node.targets[index])
    node.targets = targets
    return contentChanged || targetsChanged
  }

  #lookups(): Lookups {
    return { root: realPathOf(this.#root), files: new Map() }
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

/** Reads a file. Returns whether its content has changed. */
function updateContent(file: string, node: Node): boolean {
  const content = contentOf(file)
  const hash = content === undefined ? '' : createHash('sha256').update(content).digest('base64')
  if (hash === node.hash) return false
  node.hash = hash
  node.specifiers =
    content !== undefined && hasImports.test(file)
      ? [...new Set(importSpecifiers(content.toString('utf8')).map((one) => one.specifier))]
      : []
  return true
}

/** The content of a file; undefined when it cannot be read, which its import will report. */
function contentOf(file: string): Buffer | undefined {
  try {
    return readFileSync(file)
  } catch {
    return undefined
  }
}

/** The file below the root that `specifier` names in the module `from`, or undefined. */
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

/** The absolute path that a specifier names, without its query; undefined for a package or a malformed specifier. */
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

/** The real path of a file. A path that cannot be resolved counts as missing: it may not be an import at all. */
function realFile(path: string): string | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() === true ? realpathSync.native(path) : undefined
  } catch {
    return undefined
  }
}
