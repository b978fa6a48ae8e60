/**
 * Manifests: what the code of a release is, file by file, as JSON. `svc digest --manifest` writes one, and `svc verify`
 * compares an installation with it.
 *
 * `rooms` and `all` follow from `files`: a reader can check them, and this one does.
 */
import { reasonOf } from '../base/reason.ts'
import { isObject } from '../base/object.ts'
import { digestOf, roomOf, type Code } from './code-digest.ts'

/** A manifest that was read. */
export interface Manifest {
  readonly version: string
  /** The folder besides `bin/`: `lib` or `dist`. */
  readonly folder: string
  /** As in `Code`. */
  readonly files: ReadonlyMap<string, string>
}

/** A text that is no manifest: the message says why. */
export class ManifestError extends Error {}

const maxBytes = 16 * 1024 * 1024
const digestForm = /^[0-9a-f]{64}$/
const versionForm = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[\w.-]{1,64})?$/

/**
 * Returns the manifest of code as JSON, always the same bytes for the same code.
 * @param version of the code
 */
export function makeManifest(version: string, { files }: Pick<Code, 'files'>): string {
  const manifest = { version, files: Object.fromEntries(files), rooms: roomsOf(files), all: digestOf({ files }) }
  return `${JSON.stringify(manifest, undefined, 2)}\n`
}

/**
 * Reads a manifest.
 * @throws ManifestError
 */
export function parseManifest(bytes: Uint8Array): Manifest {
  const document = readJson(bytes)
  if (!isObject(document)) throw new ManifestError('it must be an object with version, files, rooms and all')
  const { version, files: listed, rooms, all } = document
  if (typeof version !== 'string' || !versionForm.test(version)) {
    throw new ManifestError(`version must be like 1.2.3: it is ${shown(version)}`)
  }
  const files = readFiles(listed)
  const folder = folderOf(files)
  if (!isObject(rooms)) throw new ManifestError(`rooms must be an object: it is ${shown(rooms)}`)
  const expected = roomsOf(files)
  for (const room of new Set([...Object.keys(expected), ...Object.keys(rooms)])) {
    if (rooms[room] === expected[room]) continue
    throw new ManifestError(`the digest of the room ${shown(room)} is not that of its files`)
  }
  if (all !== digestOf({ files })) throw new ManifestError('the digest all is not that of its files')
  return { version, folder, files }
}

/** Returns the digest of each room, `bin` among them. */
export function roomsOf(files: ReadonlyMap<string, string>): Record<string, string> {
  const rooms = new Set([...files.keys()].map(roomOf).filter((room) => room !== ''))
  const entries = [...rooms].sort().map((room) => [room, digestOf({ files }, (path) => roomOf(path) === room)])
  return Object.fromEntries(entries) as Record<string, string> // Each entry is a pair of texts.
}

function readJson(bytes: Uint8Array): unknown {
  if (bytes.length > maxBytes) throw new ManifestError(`it has more than ${maxBytes} bytes`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    throw new ManifestError(`it is not JSON: ${reasonOf(error)}`)
  }
}

function readFiles(listed: unknown): ReadonlyMap<string, string> {
  if (!isObject(listed)) throw new ManifestError(`files must be an object: it is ${shown(listed)}`)
  const files = new Map<string, string>()
  for (const [path, digest] of Object.entries(listed).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const parts = path.split('/')
    const isPath = parts.length > 1 && parts.every((part) => part !== '' && part !== '.' && part !== '..')
    if (!isPath || path.includes('\0')) throw new ManifestError(`files has ${shown(path)}, which is no path of a file`)
    if (typeof digest !== 'string' || !digestForm.test(digest)) {
      throw new ManifestError(`files[${shown(path)}] must be a SHA-256, 64 hexadecimal digits: it is ${shown(digest)}`)
    }
    files.set(path, digest)
  }
  return files
}

/** @throws ManifestError if the files are not in `bin/` and one of `lib/` and `dist/` */
function folderOf(files: ReadonlyMap<string, string>): string {
  const folders = new Set([...files.keys()].map((path) => path.split('/', 1)[0] ?? ''))
  const [folder = '', ...more] = [...folders].filter((name) => name !== 'bin')
  if (!folders.has('bin') || more.length > 0 || (folder !== 'lib' && folder !== 'dist')) {
    const found = [...folders].join(', ') || 'none'
    throw new ManifestError(`files must be in bin/ and one of lib/ and dist/: they are in ${found}`)
  }
  return folder
}

/** A value in a message: short, and on one line. */
function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing'
  return text.length > 80 ? `${text.slice(0, 80)}...` : text
}
