/**
 * Static files from one folder (`paths.public`).
 *
 * Small files are kept in memory and served from it as long as their inode, size and times are unchanged; one `stat`
 * per file and turn of the event loop checks that. A large file is opened and sent in pieces. Only regular files are
 * served whose real path is below the folder's real path, with no dot file or dot folder in it (`/.well-known/` aside):
 * a link may lead to another place in the folder, and nowhere else. The file that was opened is what is checked, sent
 * and kept.
 *
 * A compressed copy beside a file (`app.js.br`, `app.js.zst`, `app.js.gz`) is sent to clients that accept its coding,
 * unless it is older than the file. Small text without one is compressed here, once for each version of the file.
 *
 * Every reply must be sent, also when the client has disconnected: the file is closed when sending ends.
 */
import { statSync, type Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { parse, resolve } from 'node:path'
import { isUnchanged } from '../files/file-version.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { currentTurn } from '../files/turn.ts'
import { codingFor, isCompressible, type Coding } from '../http/compress.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError, isHttpError } from '../http/errors.ts'
import { StreamReply } from '../http/reply.ts'
import { answerWith, type Representation } from './conditional.ts'
import { contentTypeOf, describeFile, isAbsent, sendFile } from './static-file.ts'
import type { FileCoding, StaticFile } from './static-file.ts'
import { openInside, realPathInside, staticPath } from './static-path.ts'

/** The parts of a request that are read. */
type StaticRequest = Pick<CoreContext, 'header' | 'method' | 'path' | 'rawQuery'>

/** The folder, and limits with their defaults. */
export interface StaticOptions {
  /** An absolute path. */
  readonly folder: string
  /** Called when a file could not be sent to its end, after the connection was cut. */
  readonly onFailure: (path: string, error: unknown) => void
  /** Bytes of memory for small files, compressed ones included. 0: none. Default 64 MiB. */
  readonly memoryMaxBytes?: number
  /** The largest file in bytes that is read into memory. Default 1 MiB. */
  readonly smallMaxBytes?: number
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * Finds the reply to a GET or HEAD, at once where the file is in memory: 200, 206, 301 for a folder without its last
 * slash, 304 or 412; undefined when the path names no file that is served, or the method is another.
 * @throws HttpError 400 `bad_path_encoding`, 416 `range_not_satisfiable`, 500 `internal_error` for a file that is there
 *   but cannot be read
 */
export type StaticFiles = (request: StaticRequest) => MaybePromise<StreamReply | undefined>

/** A file in memory, the turn in which it was last seen unchanged, and the one in which its copies were looked for. */
interface Kept {
  readonly file: StaticFile
  seenIn: number
  copies: readonly Coding[]
  copiesSeenIn: number
}

const mebibyte = 1_048_576
/** The memory of an entry beside its bytes: header fields, path, file state. */
const entryBytes = 2048
const indexName = 'index.html'
/** The endings of the names of compressed copies; the smallest copy comes first. */
const suffixes: ReadonlyMap<Coding, string> = new Map([
  ['br', '.br'],
  ['zstd', '.zst'],
  ['gzip', '.gz'],
])
/** The codings that files are compressed with here. No zstd: a client that takes it takes Brotli, which is smaller. */
const ownCodings: readonly FileCoding[] = ['br', 'gzip']

/**
 * Makes the static files of a folder.
 * @throws Error naming the folder when it is none, or the root of the file system
 */
export function createStaticFiles(options: StaticOptions): StaticFiles {
  const { onFailure, memoryMaxBytes = 64 * mebibyte, smallMaxBytes = mebibyte, now = Date.now } = options
  const folder = checkedFolder(options.folder)
  /** By name, from the oldest to the newest. */
  const memory = new Map<string, Kept>()
  let memoryBytes = 0

  function forget(key: string): void {
    const kept = memory.get(key)
    if (kept !== undefined) memoryBytes -= bytesTaken(kept.file)
    memory.delete(key)
  }

  /** Keeps a file in place of the one that the key had; the oldest go where they are too many. */
  function keep(key: string, file: StaticFile): void {
    forget(key)
    if (bytesTaken(file) > memoryMaxBytes) return
    memory.set(key, { file, seenIn: -1, copies: [], copiesSeenIn: -1 })
    memoryBytes += bytesTaken(file)
    for (const oldest of memory.keys()) {
      if (memoryBytes <= memoryMaxBytes) return
      forget(oldest)
    }
  }

  /** The file in memory, if it is unchanged on disk; else what is on disk under that name. */
  function look(name: string, coding?: Coding): Kept | Stats | undefined {
    const key = keyOf(name, coding)
    const kept = memory.get(key)
    const turn = currentTurn()
    if (kept?.seenIn === turn) return kept
    const stats = statSync(fileOf(name, coding), { throwIfNoEntry: false })
    if (kept === undefined) return stats
    if (stats !== undefined && isUnchanged(kept.file.stats, stats)) {
      kept.seenIn = turn
      return kept
    }
    forget(key)
    return stats
  }

  function find(request: StaticRequest, path: string, name: string): MaybePromise<StreamReply | undefined> {
    const found = look(name)
    if (found === undefined) return undefined
    const stats = 'file' in found ? found.file.stats : found
    if (stats.isDirectory()) return path.endsWith('/') ? undefined : redirectToFolder(request, path)
    if (!stats.isFile()) return undefined
    const accepted = acceptedBy(request)
    if (accepted === undefined || !isCompressible(contentTypeOf(name))) return send(request, name, found)
    const coding = codingFor(accepted, copiesOf(name, found, stats))
    if (coding === undefined) return send(request, name, found)
    return after(send(request, name, look(name, coding), coding), (reply) => reply ?? send(request, name, found))
  }

  /** The codings of the compressed copies beside a file. */
  function copiesOf(name: string, found: Kept | Stats, { mtimeMs }: Stats): readonly Coding[] {
    const turn = currentTurn()
    if ('file' in found && found.copiesSeenIn === turn) return found.copies
    const copies = [...suffixes.keys()].filter((coding) => {
      const stats = statSync(fileOf(name, coding), { throwIfNoEntry: false })
      return stats?.isFile() === true && stats.mtimeMs >= mtimeMs
    })
    if ('file' in found) {
      found.copies = copies
      found.copiesSeenIn = turn
    }
    return copies
  }

  function send(
    request: StaticRequest,
    name: string,
    found: Kept | Stats | undefined,
    coding?: Coding,
  ): MaybePromise<StreamReply | undefined> {
    if (found === undefined) return undefined
    return 'file' in found ? replyFromMemory(request, found.file) : readFile(request, name, coding)
  }

  function fileOf(name: string, coding: Coding | undefined): string {
    return folder + nameOnDisk(name, coding)
  }

  async function readFile(
    request: StaticRequest,
    name: string,
    coding: Coding | undefined,
  ): Promise<StreamReply | undefined> {
    try {
      const handle = await openInside(folder, nameOnDisk(name, coding))
      return handle === undefined ? undefined : await load(request, name, handle, coding)
    } catch (error) {
      if (coding !== undefined && isAbsent(error)) return undefined // The file itself is sent.
      throw error
    }
  }

  async function load(
    request: StaticRequest,
    name: string,
    handle: FileHandle,
    coding: Coding | undefined,
  ): Promise<StreamReply | undefined> {
    let handedOver = false
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) return undefined
      const readWhole = stats.size <= smallMaxBytes
      const file = await describeFile(name, handle, { stats, nowMs: now(), readWhole, coding })
      if (file.plain.bytes !== undefined) {
        if (!file.fresh) keep(keyOf(name, coding), file)
        return await replyFromMemory(request, file)
      }
      const { status, headers, part } = answerWith(file.plain, request)
      if (part === undefined) return new StreamReply(status, headers, 0, sendNothing)
      handedOver = true
      const failed = (error: unknown): void => onFailure(request.path, error)
      return new StreamReply(status, headers, part.length, (response) => void sendFile(handle, part, response, failed))
    } finally {
      if (!handedOver) await handle.close()
    }
  }

  async function redirectToFolder(request: StaticRequest, path: string): Promise<StreamReply | undefined> {
    const name = `${path}/${indexName}`
    const stats = statSync(folder + name, { throwIfNoEntry: false })
    if (stats?.isFile() !== true || (await realPathInside(folder, name)) === undefined) return undefined
    // Without Cache-Control a client would keep a 301 for ever, also when the folder has become a file.
    const location = `${request.path}/${request.rawQuery}`
    const headers = ['Location', location, 'Cache-Control', 'no-cache', 'Content-Length', '0']
    return new StreamReply(301, headers, 0, sendNothing)
  }

  /** Returns undefined when there is no such file; throws when it exists and cannot be read. */
  function failed(request: StaticRequest, error: unknown): undefined {
    if (isHttpError(error)) throw error
    if (isAbsent(error)) return undefined
    const message = `Cannot serve the file of ${request.path}: ${String(error)}`
    throw new HttpError(500, 'internal_error', message, { cause: error })
  }

  return (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined
    const path = staticPath(request.path)
    if (path === undefined) return undefined
    const name = path.endsWith('/') ? path + indexName : path
    try {
      const found = find(request, path, name)
      return found instanceof Promise ? found.catch((error: unknown) => failed(request, error)) : found
    } catch (error) {
      return failed(request, error)
    }
  }
}

function replyFromMemory(request: StaticRequest, file: StaticFile): MaybePromise<StreamReply> {
  return after(chooseRepresentation(request, file), (representation) => {
    const { status, headers, part } = answerWith(representation, request)
    if (part === undefined) return new StreamReply(status, headers, 0, sendNothing)
    const { start, length } = part
    const bytes = representation.bytes?.subarray(start, start + length)
    return new StreamReply(status, headers, length, (response) => response.end(bytes))
  })
}

function chooseRepresentation(request: StaticRequest, file: StaticFile): MaybePromise<Representation> {
  const coding = file.compress === undefined ? undefined : codingFor(acceptedBy(request), ownCodings)
  if (coding === undefined) return file.plain
  return after(file.compress?.(coding), (compressed) => compressed ?? file.plain)
}

/** A range is always a part of the plain bytes: only they are the same for every client. */
function acceptedBy(request: StaticRequest): string | undefined {
  return request.header('range') === undefined ? request.header('accept-encoding') : undefined
}

function nameOnDisk(name: string, coding: Coding | undefined): string {
  return coding === undefined ? name : name + (suffixes.get(coding) ?? '')
}

/** The key of a file in memory: a copy is not what a request for its own name gets, which has another type. */
function keyOf(name: string, coding: Coding | undefined): string {
  return coding === undefined ? name : `${coding} ${name}`
}

/** The most memory of a file: its compressed bytes, which are made later, are never more than the plain ones. */
function bytesTaken({ plain, compress }: StaticFile): number {
  return plain.size * (compress === undefined ? 1 : 1 + ownCodings.length) + entryBytes
}

function sendNothing(response: ServerResponse): void {
  response.end()
}

function checkedFolder(folder: string): string {
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
  if (isFolder && resolve(folder) !== parse(folder).root) return resolve(folder)
  const problem = 'must be a folder that is there, and not the root of the file system'
  throw new Error(`Cannot serve static files: paths.public ${problem}: it is ${JSON.stringify(folder)}`)
}
