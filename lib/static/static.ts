/**
 * Static files from one folder (`paths.public`).
 *
 * Small files are kept in memory and served from it as long as their inode, size and times are unchanged; one `stat`
 * per file and turn of the event loop checks that. A large file is opened and sent in pieces. Only regular files are
 * served whose real path is below the folder's real path, with no dot file or dot folder in it (`/.well-known/` aside):
 * a link may lead to another place in the folder, and nowhere else.
 *
 * Small text is compressed for clients that take it so, once for each version of the file.
 *
 * Every reply must be sent, also when the client has disconnected: the file is closed when sending ends.
 */
import { statSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { parse, resolve } from 'node:path'
import { isUnchanged } from '../storage/file-version.ts'
import { after, type MaybePromise } from '../base/maybe-promise.ts'
import { currentTurn } from '../storage/turn.ts'
import { codingFor } from '../http/compress.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError, isHttpError } from '../http/errors.ts'
import { StreamReply } from '../http/reply.ts'
import { answerWith } from './conditional.ts'
import { describeFile, isAbsent, openForReading, sendFile } from './static-file.ts'
import type { FileCoding, Representation, StaticFile } from './static-file.ts'
import { realPathInside, staticPath } from './static-path.ts'

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

/** A file in memory, and the turn in which it was last seen unchanged. */
interface Kept {
  readonly file: StaticFile
  seenIn: number
}

const mebibyte = 1_048_576
/** The memory of an entry beside its bytes: header fields, path, file state. */
const entryBytes = 2048
const indexName = 'index.html'
/** The codings that files are compressed with. No zstd: a client that takes it takes Brotli, which is smaller. */
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

  function forget(name: string): void {
    const kept = memory.get(name)
    if (kept !== undefined) memoryBytes -= bytesTaken(kept.file)
    memory.delete(name)
  }

  /** Keeps a file in place of the one that had its name; the oldest go where they are too many. */
  function keep(name: string, file: StaticFile): void {
    forget(name)
    if (bytesTaken(file) > memoryMaxBytes) return
    memory.set(name, { file, seenIn: -1 })
    memoryBytes += bytesTaken(file)
    for (const oldest of memory.keys()) {
      if (memoryBytes <= memoryMaxBytes) return
      forget(oldest)
    }
  }

  function find(request: StaticRequest, path: string, name: string): MaybePromise<StreamReply | undefined> {
    const kept = memory.get(name)
    const turn = currentTurn()
    if (kept?.seenIn === turn) return replyFromMemory(request, kept.file)
    const stats = statSync(folder + name, { throwIfNoEntry: false })
    if (kept !== undefined && stats !== undefined && isUnchanged(kept.file.stats, stats)) {
      kept.seenIn = turn
      return replyFromMemory(request, kept.file)
    }
    forget(name)
    if (stats?.isDirectory()) return path.endsWith('/') ? undefined : redirectToFolder(request, path)
    return stats?.isFile() ? load(request, name) : undefined
  }

  async function load(request: StaticRequest, name: string): Promise<StreamReply | undefined> {
    const real = await realPathInside(folder, name)
    if (real === undefined) return undefined
    const handle = await openForReading(real)
    let handedOver = false
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) return undefined
      const readWhole = stats.size <= smallMaxBytes
      const file = await describeFile(name, handle, { stats, nowMs: now(), readWhole })
      if (file.plain.bytes !== undefined) {
        if (!file.fresh) keep(name, file)
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
