/**
 * Static files from one folder (`paths.public`).
 *
 * Small files are kept in memory and served from it as long as their inode, size and times are unchanged; one `stat`
 * per file and turn of the event loop checks that. A large file is opened and sent in pieces. A file is served only if
 * it is a regular file and its real path is below the folder's real path, with no dot file or dot folder in it (except
 * `/.well-known/`): a link may lead elsewhere in the folder, but not out of it. The opened file itself is checked, sent
 * and kept, so there is no race between check and use.
 *
 * A compressed copy beside a file (`app.js.br`, `app.js.zst`, `app.js.gz`) is sent to clients that accept its coding,
 * unless it is older than the file. Small text without one is compressed here, once per version of the file.
 *
 * A fallback, the page of a single-page application, answers requests for pages that name neither a route nor a file.
 *
 * Every reply must be sent, even when the client has disconnected: the file is closed when sending ends.
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
import { matcherOf } from './glob.ts'
import { contentTypeOf, describeFile, isAbsent, sendFile } from './static-file.ts'
import type { FileCoding, StaticFile } from './static-file.ts'
import { openInside, realPathInside, staticPath } from './static-path.ts'

/** The parts of a request that are read. */
type StaticRequest = Pick<CoreContext, 'header' | 'method' | 'path' | 'prefix' | 'rawQuery' | 'formatOfPrefix'>

/** The folder, how its files are served, and limits with their defaults. */
export interface StaticOptions {
  /** An absolute path. */
  readonly folder: string
  /** The file, relative to the folder, that answers requests for unknown pages. Default: none. */
  readonly fallback?: string
  /** Content-Types by extension, with or without its dot, besides the known ones. */
  readonly types?: Readonly<Record<string, string>>
  /** Patterns (`glob.ts`) of files whose content never changes. */
  readonly immutable?: readonly string[]
  /** Called when a file could not be sent to its end, after the connection was cut. */
  readonly onFailure: (path: string, error: unknown) => void
  /** Bytes of memory for small files, including compressed ones. 0: none. Default 64 MiB. */
  readonly memoryMaxBytes?: number
  /** The largest file in bytes that is read into memory. Default 1 MiB. */
  readonly smallMaxBytes?: number
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly now?: () => number
}

/** A file in memory, the turn in which it was last seen unchanged, and the turn of the last search for copies. */
interface Kept {
  readonly file: StaticFile
  seenIn: number
  copies: readonly Coding[]
  copiesSeenIn: number
}

const mebibyte = 1_048_576
/** The memory of an entry besides its bytes: header fields, path, stats. */
const entryBytes = 2048
const indexName = 'index.html'
/** With `no-cache` a client keeps a copy but revalidates it each time, so a change shows at once. */
const revalidated = 'no-cache'
/** For a year a client uses its copy without revalidation (RFC 8246). */
const unchanging = 'max-age=31536000, immutable'
const allowed = 'GET, HEAD, OPTIONS'
const htmlType = /\btext\/html\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i
/** The suffixes of compressed copies; the smallest copy comes first. */
const suffixes: ReadonlyMap<Coding, string> = new Map([
  ['br', '.br'],
  ['zstd', '.zst'],
  ['gzip', '.gz'],
])
/** The codings used for compression here. No zstd: clients that accept it accept Brotli too, which is smaller. */
const ownCodings: readonly FileCoding[] = ['br', 'gzip']

/** The static files of a folder. */
export class StaticFiles {
  readonly #folder: string
  /** As a path below the folder, with a leading '/'. */
  readonly #fallback: string | undefined
  readonly #types: ReadonlyMap<string, string>
  readonly #isImmutable: (path: string) => boolean
  readonly #onFailure: StaticOptions['onFailure']
  readonly #memoryMaxBytes: number
  readonly #smallMaxBytes: number
  readonly #now: () => number
  /** By name, oldest first. */
  readonly #memory = new Map<string, Kept>()
  #memoryBytes = 0

  /** @throws Error that names the folder if it does not exist or is the root of the file system */
  constructor(options: StaticOptions) {
    const { onFailure, memoryMaxBytes = 64 * mebibyte, smallMaxBytes = mebibyte, now = Date.now } = options
    const { fallback = '', types = {}, immutable = [] } = options
    this.#folder = checkedFolder(options.folder)
    this.#fallback = fallback === '' ? undefined : `/${fallback}`
    this.#types = new Map(Object.entries(types).map(([name, type]) => [name.replace(/^\./, '').toLowerCase(), type]))
    this.#isImmutable = matcherOf(immutable)
    this.#onFailure = onFailure
    this.#memoryMaxBytes = memoryMaxBytes
    this.#smallMaxBytes = smallMaxBytes
    this.#now = now
  }

  /**
   * Finds the reply, synchronously if the file is in memory: 200, 206, 301 for a folder without its trailing slash, 304
   * or 412, and 204 for OPTIONS; undefined when the path names no served file and there is no fallback.
   * @param usesFallback whether the fallback answers where there is no file
   * @throws HttpError 400 `bad_path_encoding`, 405 `method_not_allowed`, 416 `range_not_satisfiable`, 500
   *   `internal_error` for a file that exists but cannot be read
   */
  find(request: StaticRequest, usesFallback = true): MaybePromise<StreamReply | undefined> {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const path = staticPath(request.path)
    if (!isRead) {
      if (path === undefined) return undefined
      return this.#answerMethod(request, nameOf(path)).catch((error: unknown) => notRead(request, error))
    }
    const found = path === undefined ? undefined : this.#tryToFind(request, path)
    return usesFallback ? after(found, (reply) => reply ?? this.#findFallback(request)) : found
  }

  #tryToFind(request: StaticRequest, path: string): MaybePromise<StreamReply | undefined> {
    try {
      const found = this.#findFile(request, path, nameOf(path))
      return found instanceof Promise ? found.catch((error: unknown) => notRead(request, error)) : found
    } catch (error) {
      return notRead(request, error)
    }
  }

  /** Finds the fallback for a request of a page. Clients of an API, and of the panel, get their 404. */
  #findFallback(request: StaticRequest): MaybePromise<StreamReply | undefined> {
    if (this.#fallback === undefined || request.formatOfPrefix === 'json' || request.path.startsWith('/svc-')) {
      return undefined
    }
    if (!htmlType.test(request.header('accept') ?? '')) return undefined
    return after(this.#tryToFind(request, this.#fallback), (reply) => reply && chosenByAccept(reply))
  }

  /** Answers a method other than GET and HEAD, for a file. */
  async #answerMethod({ method, path }: StaticRequest, name: string): Promise<StreamReply | undefined> {
    const isFile = statSync(this.#folder + name, { throwIfNoEntry: false })?.isFile() === true
    if (!isFile || (await realPathInside(this.#folder, name)) === undefined) return undefined
    if (method === 'OPTIONS') return new StreamReply(204, ['Allow', allowed], 0, sendNothing)
    const message = `${path} takes ${allowed}, not ${method}`
    throw new HttpError(405, 'method_not_allowed', message, { headers: { Allow: allowed } })
  }

  #forget(key: string): void {
    const kept = this.#memory.get(key)
    if (kept !== undefined) this.#memoryBytes -= bytesTaken(kept.file)
    this.#memory.delete(key)
  }

  /** Keeps a file, replacing the one under the same key; drops the oldest past the memory limit. */
  #keep(key: string, file: StaticFile): void {
    this.#forget(key)
    if (bytesTaken(file) > this.#memoryMaxBytes) return
    this.#memory.set(key, { file, seenIn: -1, copies: [], copiesSeenIn: -1 })
    this.#memoryBytes += bytesTaken(file)
    for (const oldest of this.#memory.keys()) {
      if (this.#memoryBytes <= this.#memoryMaxBytes) return
      this.#forget(oldest)
    }
  }

  /** Returns the file in memory, if it is unchanged on disk; else the stats of the file on disk. */
  #lookUp(name: string, coding?: Coding): Kept | Stats | undefined {
    const key = keyOf(name, coding)
    const kept = this.#memory.get(key)
    const turn = currentTurn()
    if (kept?.seenIn === turn) return kept
    const stats = statSync(this.#fileOf(name, coding), { throwIfNoEntry: false })
    if (kept === undefined) return stats
    if (stats !== undefined && isUnchanged(kept.file.stats, stats)) {
      kept.seenIn = turn
      return kept
    }
    this.#forget(key)
    return stats
  }

  #findFile(request: StaticRequest, path: string, name: string): MaybePromise<StreamReply | undefined> {
    const found = this.#lookUp(name)
    if (found === undefined) return undefined
    const stats = 'file' in found ? found.file.stats : found
    if (stats.isDirectory()) return path.endsWith('/') ? undefined : this.#redirectToFolder(request, path)
    if (!stats.isFile()) return undefined
    const accepted = acceptedBy(request)
    const type = contentTypeOf(name, this.#types)
    if (accepted === undefined || !isCompressible(type)) return this.#send(request, name, found)
    const coding = codingFor(accepted, this.#copiesOf(name, found, stats))
    if (coding === undefined) return this.#send(request, name, found)
    const copy = this.#send(request, name, this.#lookUp(name, coding), coding)
    return after(copy, (reply) => reply ?? this.#send(request, name, found))
  }

  /** The codings of the compressed copies beside a file. */
  #copiesOf(name: string, found: Kept | Stats, { mtimeMs }: Stats): readonly Coding[] {
    const turn = currentTurn()
    if ('file' in found && found.copiesSeenIn === turn) return found.copies
    const copies = [...suffixes.keys()].filter((coding) => {
      const stats = statSync(this.#fileOf(name, coding), { throwIfNoEntry: false })
      return stats?.isFile() === true && stats.mtimeMs >= mtimeMs
    })
    if ('file' in found) {
      found.copies = copies
      found.copiesSeenIn = turn
    }
    return copies
  }

  #send(
    request: StaticRequest,
    name: string,
    found: Kept | Stats | undefined,
    coding?: Coding,
  ): MaybePromise<StreamReply | undefined> {
    if (found === undefined) return undefined
    return 'file' in found ? replyFromMemory(request, found.file) : this.#readFile(request, name, coding)
  }

  #fileOf(name: string, coding: Coding | undefined): string {
    return this.#folder + nameOnDisk(name, coding)
  }

  async #readFile(
    request: StaticRequest,
    name: string,
    coding: Coding | undefined,
  ): Promise<StreamReply | undefined> {
    try {
      const handle = await openInside(this.#folder, nameOnDisk(name, coding))
      return handle === undefined ? undefined : await this.#load(request, name, handle, coding)
    } catch (error) {
      if (coding !== undefined && isAbsent(error)) return undefined // The file itself is sent.
      throw error
    }
  }

  async #load(
    request: StaticRequest,
    name: string,
    handle: FileHandle,
    coding: Coding | undefined,
  ): Promise<StreamReply | undefined> {
    let handedOver = false
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) return undefined
      const readWhole = stats.size <= this.#smallMaxBytes
      const type = contentTypeOf(name, this.#types)
      const cacheControl = this.#isImmutable(name) ? unchanging : revalidated
      const description = { stats, nowMs: this.#now(), readWhole, type, cacheControl, coding }
      const file = await describeFile(handle, { ...description, varies: isCompressible(type) })
      if (file.plain.bytes !== undefined) {
        if (!file.fresh) this.#keep(keyOf(name, coding), file)
        return await replyFromMemory(request, file)
      }
      const { status, headers, part } = answerWith(file.plain, request)
      if (part === undefined) return new StreamReply(status, headers, 0, sendNothing)
      handedOver = true
      const failed = (error: unknown): void => this.#onFailure(request.path, error)
      return new StreamReply(status, headers, part.length, (response) => void sendFile(handle, part, response, failed))
    } finally {
      if (!handedOver) await handle.close()
    }
  }

  async #redirectToFolder(request: StaticRequest, path: string): Promise<StreamReply | undefined> {
    const name = `${path}/${indexName}`
    const stats = statSync(this.#folder + name, { throwIfNoEntry: false })
    if (stats?.isFile() !== true || (await realPathInside(this.#folder, name)) === undefined) return undefined
    // Without Cache-Control a client would keep a 301 forever, even after the folder has become a file.
    const location = `${request.prefix}${request.path}/${request.rawQuery}`
    const headers = ['Location', location, 'Cache-Control', 'no-cache', 'Content-Length', '0']
    return new StreamReply(301, headers, 0, sendNothing)
  }
}

function nameOf(path: string): string {
  return path.endsWith('/') ? path + indexName : path
}

/** Returns undefined when there is no such file; throws when it exists and cannot be read. */
function notRead(request: StaticRequest, error: unknown): undefined {
  if (isHttpError(error)) throw error
  if (isAbsent(error)) return undefined
  const message = `Cannot serve the file of ${request.path}: ${String(error)}`
  throw new HttpError(500, 'internal_error', message, { cause: error })
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

/** A range always refers to the plain bytes: only they are the same for every client. */
function acceptedBy(request: StaticRequest): string | undefined {
  return request.header('range') === undefined ? request.header('accept-encoding') : undefined
}

function nameOnDisk(name: string, coding: Coding | undefined): string {
  return coding === undefined ? name : name + (suffixes.get(coding) ?? '')
}

/** The key of a file in memory: a copy differs from the file that a request for its own name gets, by its type. */
function keyOf(name: string, coding: Coding | undefined): string {
  return coding === undefined ? name : `${coding} ${name}`
}

/** The most memory of a file: its compressed bytes, which are made later, never exceed the plain ones. */
function bytesTaken({ plain, compress }: StaticFile): number {
  return plain.size * (compress === undefined ? 1 : 1 + ownCodings.length) + entryBytes
}

/** Adds that the reply was chosen by `Accept`: a cache must not give it to other clients. */
function chosenByAccept({ status, headers, length, send }: StreamReply): StreamReply {
  const at = headers.indexOf('Vary') + 1
  const varied = at === 0 ? [...headers, 'Vary', 'Accept'] : headers.with(at, `${headers[at]}, Accept`)
  return new StreamReply(status, varied, length, send)
}

function sendNothing(response: ServerResponse): void {
  response.end()
}

function checkedFolder(folder: string): string {
  const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
  if (isFolder && resolve(folder) !== parse(folder).root) return resolve(folder)
  const problem = 'must be an existing folder, and not the root of the file system'
  throw new Error(`Cannot serve static files: paths.public ${problem}: it is ${JSON.stringify(folder)}`)
}
