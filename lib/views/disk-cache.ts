/**
 * Compiled views on disk, so that a new process need not compile what an earlier one did. An entry is a `.hrb` file: a
 * header of one line of JSON, then the generated source. It says by which version, and from which contents of which
 * files it was made.
 *
 * Surprise: the checks find what is stale, truncated or damaged; they do not find what is forged, since whoever can
 * write here can write a right checksum too. So an entry that others may write is not used, and the folder is made for
 * this user alone.
 */

import { createHash } from 'node:crypto'
import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs'
import { rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { replaceFileSync } from '../storage/replace-file.ts'
import type { Program } from './compile.ts'

/** A program, and the SHA-256 (hex) of each of its files, in their order. */
export interface Entry {
  readonly program: Program
  readonly hashes: readonly string[]
}

export interface DiskCache {
  /** The entry of a view, unless there is none or it is unusable. Whether its files are as they were is not checked. */
  read(file: string): Entry | undefined
  /** Writes the entry of a view, whole or not at all. */
  write(file: string, entry: Entry): void
  /** Deletes all entries and readable sources; returns their number and the folder. */
  clear(): { deleted: number; path: string }
}

export interface DiskCacheOptions {
  /** The folder of the entries; made when it is needed, with mode 0700. */
  readonly folder: string
  /** The server's version: another version's entries are not used. */
  readonly version: string
  /** Whether to write the readable source `__<name>.prg` too. */
  readonly readable: boolean
  /** Is told of a damaged entry, and once of a folder that cannot be written. The view is served all the same. */
  readonly onProblem: (message: string) => void
}

/** The first line of an entry. `digest` covers the rest of the line and the source. */
interface Header {
  readonly version: string
  readonly digest: string
  readonly files: readonly (readonly [file: string, sha256: string])[]
  readonly absent: Program['absent']
  readonly names: Program['names']
  readonly places: Program['places']
}

const writableByOthers = 0o022

/** Makes the disk cache of one folder. Touches nothing yet. */
export function createDiskCache(options: DiskCacheOptions): DiskCache {
  const { folder, readable, onProblem } = options
  // What one Node compiles another may refuse, so an entry is of both versions.
  const version = `${options.version} (Node ${process.version})`
  let toldOfWriting = false
  const entryPath = (file: string): string => join(folder, `${withoutExtension(file)}.hrb`)

  return {
    read(file) {
      const path = entryPath(file)
      try {
        const text = readOwn(path)
        return text === undefined ? undefined : decode(text, file, version)
      } catch (error) {
        onProblem(`Cannot use the compiled view ${path}: ${(error as Error).message}; it is compiled anew`)
        return undefined
      }
    },

    write(file, entry) {
      const path = entryPath(file)
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
        writeWhole(path, encode(entry, version))
        if (readable) {
          const name = `__${withoutExtension(file).split('/').at(-1)}.prg`
          writeWhole(join(dirname(path), name), readableSource(entry.program))
        }
      } catch (error) {
        if (toldOfWriting) return
        toldOfWriting = true
        onProblem(`Cannot write compiled views to ${folder}: ${(error as Error).message}; they are kept in memory only`)
      }
    },

    clear: () => ({ deleted: deleteEntries(folder, onProblem), path: folder }),
  }
}

/** The SHA-256 of a text in UTF-8, hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function withoutExtension(file: string): string {
  return file.slice(0, -'.html'.length)
}

function encode({ program, hashes }: Entry, version: string): string {
  const header = {
    version,
    files: program.files.map((file, index) => [file, hashes[index] ?? ''] as const),
    absent: program.absent,
    names: program.names,
    places: program.places,
  }
  const digest = digestOf(header, program.source)
  return `${JSON.stringify({ ...header, digest } satisfies Header)}\n${program.source}`
}

/**
 * Returns the entry, or undefined when another version of the server made it.
 * @throws Error when it is damaged
 */
function decode(text: string, file: string, version: string): Entry | undefined {
  const end = text.indexOf('\n')
  if (end < 0) throw new Error('it has no header')
  const source = text.slice(end + 1)
  // What is no header fails one of the two tests below, before anything else of it is used.
  const header = JSON.parse(text.slice(0, end)) as Partial<Header> | null
  if (header?.version !== version) return undefined
  const { digest, ...rest } = header
  if (digest !== digestOf(rest, source)) throw new Error('its checksum is wrong')
  const { files, absent, names, places } = header as Header
  if (files[0]?.[0] !== file) throw new Error(`it is that of ${files[0]?.[0] ?? 'no view'}`)
  const program = { source, names, places, absent, files: files.map(([name]) => name) }
  return { program, hashes: files.map(([, hash]) => hash) }
}

function digestOf(header: Omit<Partial<Header>, 'digest'>, source: string): string {
  const { version, files, absent, names, places } = header
  return sha256(JSON.stringify([version, files, absent, names, places, source]))
}

/** Reads a file that nobody else may write; undefined when there is none. */
function readOwn(path: string): string | undefined {
  const descriptor = openExisting(path)
  if (descriptor === undefined) return undefined
  try {
    const { mode, uid } = fstatSync(descriptor)
    const self = process.geteuid?.() ?? uid
    if ((mode & writableByOthers) !== 0) throw new Error('other users may write it')
    if (uid !== self && uid !== 0) throw new Error('it belongs to another user')
    return readFileSync(descriptor, 'utf8')
  } finally {
    closeSync(descriptor)
  }
}

function openExisting(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

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
      onProblem(`Cannot delete compiled views in ${folder}: ${(error as Error).message}`)
    }
  }
  return deleted
}
