/**
 * Compiled views on disk, so that a new process need not compile them again. An entry is a `.hrb` file: a line with the
 * checksum of the rest, a line of JSON, then the generated source. The JSON has the version that wrote the entry, and
 * the files that it was compiled from, with the hashes of their contents.
 *
 * The checks detect an entry that is stale, truncated or damaged, but not a forged one: anyone who can write here can
 * write a matching checksum. So an entry that others can write is not used, and the folder has mode 0700.
 */

import { createHash } from 'node:crypto'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs'
import { rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { replaceFileSync } from '../files/replace-file.ts'
import type { Program } from './compile.ts'

/** A program, and the SHA-256 (hex) of each of its files, in the same order. */
export interface Entry {
  readonly program: Program
  readonly hashes: readonly string[]
}

/** The second line of an entry. */
interface Header extends Omit<Program, 'source'> {
  readonly version: string
  readonly hashes: readonly string[]
}

const writableByOthers = 0o022

/** The disk cache of one folder. */
export class DiskCache {
  readonly #folder: string
  readonly #version: string
  readonly #readable: boolean
  readonly #onProblem: (message: string) => void
  #reportedWriting = false

  /**
   * Touches no file.
   * @param folder of the entries, absolute; created when it is needed, with mode 0700
   * @param version the server's version: entries of another version are not used
   * @param readable whether to write the readable source `__<name>.prg` too
   * @param onProblem called for each unusable entry, and once when the folder cannot be written
   */
  constructor(folder: string, version: string, readable: boolean, onProblem: (message: string) => void) {
    this.#folder = folder
    // One version of Node may refuse what another compiles, so the version of Node is part of the key.
    this.#version = `${version} (Node ${process.version})`
    this.#readable = readable
    this.#onProblem = onProblem
  }

  /** Returns the entry of a view; undefined when it is missing or unusable. Its files may have changed since. */
  read(file: string): Entry | undefined {
    const path = this.#pathOf(file)
    try {
      return decode(readOwn(path), file, this.#version)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#onProblem(`Cannot use the compiled view ${path}: ${reasonOf(error)}; it is compiled again`)
      }
      return undefined
    }
  }

  /** Writes the entry of a view atomically. */
  write(file: string, entry: Entry): void {
    const path = this.#pathOf(file)
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writeWhole(path, encode(entry, this.#version))
      if (this.#readable) {
        const name = basename(path).slice(0, -'.hrb'.length)
        writeWhole(join(dirname(path), `__${name}.prg`), readableSource(entry.program))
      }
    } catch (error) {
      if (this.#reportedWriting) return
      this.#reportedWriting = true
      const problem = `Cannot write compiled views to ${this.#folder}: ${reasonOf(error)}`
      this.#onProblem(`${problem}; they are kept in memory only`)
    }
  }

  /** Deletes all entries and readable sources; returns their number and the folder. */
  clear(): { deleted: number; path: string } {
    return { deleted: deleteEntries(this.#folder, this.#onProblem), path: this.#folder }
  }

  #pathOf(file: string): string {
    return join(this.#folder, `${file.slice(0, -'.html'.length)}.hrb`)
  }
}

/** The SHA-256 of a text in UTF-8, hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function encode({ program, hashes }: Entry, version: string): string {
  const { source, ...rest } = program
  const text = `${JSON.stringify({ version, hashes, ...rest } satisfies Header)}\n${source}`
  return `${sha256(text)}\n${text}`
}

/**
 * Returns the entry, or undefined when another version of the server wrote it.
 * @throws Error when it is damaged
 */
function decode(text: string, file: string, version: string): Entry | undefined {
  const [digest = '', header = '', ...source] = text.split('\n')
  if (digest !== sha256(text.slice(digest.length + 1))) throw new Error('its checksum is wrong')
  const { version: madeBy, hashes, ...rest } = JSON.parse(header) as Header // The checksum vouches for its shape.
  if (madeBy !== version) return undefined
  if (rest.files[0] !== file) throw new Error(`it belongs to ${rest.files[0]}`)
  return { program: { ...rest, source: source.join('\n') }, hashes }
}

/** Reads a file. Throws when another user can write it. */
function readOwn(path: string): string {
  const descriptor = openSync(path, 'r')
  try {
    const { mode, uid } = fstatSync(descriptor)
    const self = process.geteuid?.() ?? uid
    if ((mode & writableByOthers) !== 0) throw new Error('other users can write it')
    if (uid !== self && uid !== 0) throw new Error('it belongs to another user')
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

/** Replaces the file atomically, so that no reader sees half of it, even when two processes write at once. */
function writeWhole(path: string, text: string): void {
  replaceFileSync(path, (temporary) => writeFileSync(temporary, text, { flag: 'wx', mode: 0o600 }))
}

function readableSource({ source, files, names, places }: Program): string {
  const lines = places.map(([file, line], place) => `//   ${place} = ${files[file]}:${line}`)
  const taken = names.map(([name]) => name).join(', ')
  return [`// ${files.join(', ')}`, `// names: ${taken}`, '// svc$at:', ...lines, source, ''].join('\n')
}

function deleteEntries(folder: string, onProblem: (message: string) => void): number {
  let deleted = 0
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) {
        deleted += deleteEntries(path, onProblem)
      } else if (entry.name.endsWith('.hrb') || /^__.*\.prg$/s.test(entry.name)) {
        rmSync(path, { force: true })
        deleted++
      }
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      onProblem(`Cannot delete compiled views in ${folder}: ${reasonOf(error)}`)
    }
  }
  return deleted
}
