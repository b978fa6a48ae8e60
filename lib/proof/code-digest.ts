/**
 * The digest of the server's code: SHA-256 over the files of `bin/` and of the folder that runs, `lib/` or `dist/`.
 *
 * It is the digest of the list that `sha256sum` prints for these files in the order of their paths, so that other tools
 * can recompute it. Surprise: what is not a plain file has a sentence in place of its digest, and is never followed: a
 * link, below which other code could run, changes the digest even if its target has the same bytes.
 */
import { hash } from 'node:crypto'
import { closeSync, constants, lstatSync, openSync, readdirSync, readlinkSync, readSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reasonOf } from '../base/reason.ts'
import { version } from '../base/version.ts'
import { tierOf } from './tiers.ts'

/** The digests of the running code, as the first log line, `/svc-status` and the metrics show them. */
export interface CodeDigest {
  readonly version: string
  /** Of all files, 64 hexadecimal digits, as `tier1`. */
  readonly digest: string
  readonly tier1: string
  /** A warning, if something is not a plain, readable file. */
  readonly warnings: readonly string[]
}

/** The code of an installation, as it was read. */
export interface Code {
  /** The folder of the package, absolute. */
  readonly root: string
  /** The folder besides `bin/`: `lib` or `dist`. */
  readonly folder: string
  /** The SHA-256 of each file in hexadecimal digits, by its path from the root (`lib/core/server.ts`), sorted. */
  readonly files: ReadonlyMap<string, string>
  /** What is no plain, readable file, by its path: what is wrong with it, such as `is a link to /tmp`. */
  readonly faults: ReadonlyMap<string, string>
  /** The folders of `folder`, sorted: its rooms. */
  readonly rooms: readonly string[]
}

/** The folder of the package. */
const ownRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
/** The folder of this file's own tree: what runs. */
const ownFolder = basename(dirname(dirname(fileURLToPath(import.meta.url))))
/** A file is read in pieces of this many bytes: nearly all are read in one. */
const pieceBytes = 256 * 1024

let known: CodeDigest | undefined

/**
 * Returns the digests of the code that this process runs, as its files were at the first call: one process has one
 * code, even if several servers run in it. Never throws: what cannot be read is a warning.
 */
export function codeDigest(): CodeDigest {
  if (known !== undefined) return known
  const code = readCode()
  known = {
    version,
    digest: digestOf(code),
    tier1: digestOf(code, (path) => tierOf(roomOf(path)) === 1),
    warnings: codeWarnings(code),
  }
  return known
}

/** Returns the warning about code that is not made of plain, readable files: none or one. */
export function codeWarnings({ faults }: Pick<Code, 'faults'>): readonly string[] {
  const [first, ...more] = faults
  if (first === undefined) return []
  const others = more.length === 0 ? '' : `, and ${more.length} more: see svc digest`
  return [`the code of this server: ${first.join(' ')}${others}`]
}

/**
 * Reads and hashes the code of an installation. Never throws: see `Code.faults`.
 * @param root the folder of the package; default: that of this process
 * @param folder `lib` or `dist`; default: the one that this process runs
 */
export function readCode(root = ownRoot, folder = ownFolder): Code {
  const reader = new CodeReader(root)
  reader.add('bin')
  reader.add(folder)
  const rooms = reader.folders.filter((path) => dirname(path) === folder).map((path) => basename(path))
  return { root, folder, files: sorted(reader.files), faults: sorted(reader.faults), rooms: rooms.sort() }
}

/**
 * Returns the digest of the chosen files; default: of all.
 * @param of as in `Code`; without faults for a manifest
 */
export function digestOf(
  { files, faults }: { readonly files: ReadonlyMap<string, string>; readonly faults?: ReadonlyMap<string, string> },
  isChosen: (path: string) => boolean = () => true,
): string {
  const entries = faults === undefined || faults.size === 0 ? files : sorted(new Map([...files, ...faults]))
  let list = ''
  for (const [path, value] of entries) if (isChosen(path)) list += lineOf(path, value)
  return hash('sha256', list)
}

/** Returns the room of a path from the root: `bin`, a folder in the code's folder, or '' for a file beside those. */
export function roomOf(path: string): string {
  const [top = '', room = '', ...rest] = path.split('/')
  if (top === 'bin') return 'bin'
  return rest.length === 0 ? '' : room
}

/** Returns a line of the list, as `sha256sum` prints it: unusual names are escaped, so that none forges a line. */
function lineOf(path: string, value: string): string {
  if (!/[\\\n\r]/.test(path)) return `${value}  ${path}\n`
  return `\\${value}  ${path.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}\n`
}

function sorted(entries: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...entries].sort(([a], [b]) => (a < b ? -1 : 1)))
}

class CodeReader {
  readonly files = new Map<string, string>()
  readonly faults = new Map<string, string>()
  readonly folders: string[] = []
  readonly #root: string
  readonly #piece = Buffer.allocUnsafe(pieceBytes)

  constructor(root: string) {
    this.#root = root
  }

  /** Adds a folder, and everything below it. @param path from the root, with `/` */
  add(path: string): void {
    this.#attempt(path, (full) => {
      if (lstatSync(full).isSymbolicLink()) this.#addLink(path, full)
      else this.#addFolder(path, full)
    })
  }

  #addFolder(folder: string, full: string): void {
    this.folders.push(folder)
    for (const entry of readdirSync(full, { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      this.#attempt(path, (at) => {
        if (entry.isDirectory()) this.#addFolder(path, at)
        else if (entry.isFile()) this.files.set(path, this.#hashFile(at))
        else if (entry.isSymbolicLink()) this.#addLink(path, at)
        else this.faults.set(path, 'is neither a file nor a folder')
      })
    }
  }

  #addLink(path: string, full: string): void {
    this.faults.set(path, `is a link to ${readlinkSync(full)}`)
  }

  #attempt(path: string, read: (full: string) => void): void {
    try {
      read(join(this.#root, path))
    } catch (error) {
      this.faults.set(path, `cannot be read: ${reasonOf(error)}`)
    }
  }

  /** Opens the file without following a link, which may have replaced it since the folder was listed. */
  #hashFile(full: string): string {
    const file = openSync(full, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    try {
      let length = readSync(file, this.#piece)
      if (length < pieceBytes) return hash('sha256', this.#piece.subarray(0, length))
      const pieces: Buffer[] = []
      while (length > 0) {
        pieces.push(Buffer.from(this.#piece.subarray(0, length)))
        length = readSync(file, this.#piece)
      }
      return hash('sha256', Buffer.concat(pieces))
    } finally {
      closeSync(file)
    }
  }
}
