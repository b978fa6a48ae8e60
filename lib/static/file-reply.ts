/**
 * `ctx.file`: a file of the application as a reply, with the conditions and ranges of static files.
 *
 * The reply is a parked one that takes no worker: the file is opened when middleware and action have returned, so no
 * descriptor is held for a reply that is dropped. The opened file is what is checked and sent. It is closed when the
 * response ends, for whatever reason.
 */
import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { FileOptions } from 'svc'
import { fineStepMs, isSettled } from '../files/file-version.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError, isHttpError } from '../http/errors.ts'
import type { Feature } from '../http/features.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import { StreamReply, type ReadyReply } from '../http/reply.ts'
import { answerWith } from './conditional.ts'
import { contentTypeOf, describeFile, isAbsent, sendFile } from './static-file.ts'
import { isPlainPath, openInside } from './static-path.ts'

/** Where paths begin, and what happens to files that cannot be sent. */
interface FileSource {
  /** The base of relative paths, absolute. */
  readonly root: string
  /** Called when a file could not be sent to its end, after the connection was cut. */
  readonly onFailure: (path: string, error: unknown) => void
}

/** Larger files are read while they are sent, and their ETag is made of their times. */
const smallMaxBytes = 1_048_576
/** Errors of the file system, besides those of `isAbsent`, for a path without a file that this process can read. */
const unreadable = new Set(['EACCES', 'EPERM', 'EISDIR', 'ENXIO', 'ENODEV', 'EINVAL'])
/** Types whose scripts would run with the rights of this site. */
const activeType = /^(?:text\/html|image\/svg\+xml|(?:application|text)\/xml|[^;\s]+\+xml)\s*(?:;|$)/i
const knownOptions = ['in', 'name', 'inline', 'type', 'maxAge_s']

/** Makes the feature for one server. */
export function fileFeature(source: FileSource): Feature {
  const make = (ctx: CoreContext) => (path: string, options: FileOptions = {}) => {
    checkArguments(path, options)
    return (ctx.reply = new FileReply(ctx, source, path, options))
  }
  return { name: 'files', members: [{ name: 'file', make }] }
}

class FileReply extends ParkedReply {
  readonly #source: FileSource
  readonly #path: string
  readonly #options: FileOptions
  #opening: Promise<ReadyReply | undefined> | undefined = undefined

  constructor(ctx: CoreContext, source: FileSource, path: string, options: FileOptions) {
    super(ctx, Infinity)
    this.#source = source
    this.#path = path
    this.#options = options
  }

  /** Never used: it takes no worker. */
  get kind() {
    return 'sse' as const
  }

  override get needsClient(): boolean {
    return false
  }

  ready(): Promise<ReadyReply | undefined> {
    return (this.#opening ??= this.#open())
  }

  waiting(): void {}

  started(): undefined {}

  ended(reason: EndReason): Promise<ReadyReply | undefined> | undefined {
    return reason === 'left' ? undefined : this.ready()
  }

  async #open(): Promise<ReadyReply | undefined> {
    try {
      const handle = await this.#openFile()
      if (handle === undefined) throw this.#notFound()
      return await this.#replyOf(handle)
    } catch (error) {
      if (isHttpError(error)) throw error
      if (isAbsent(error) || unreadable.has(String((error as NodeJS.ErrnoException).code))) throw this.#notFound()
      throw new HttpError(500, 'internal_error', `Cannot send ${this.#path}: ${String(error)}`, { cause: error })
    } finally {
      this.ctx.parked = undefined // It did not wait for an event, so its duration counts like any other.
    }
  }

  #openFile(): Promise<FileHandle | undefined> {
    const { root } = this.#source
    const { in: folder } = this.#options
    if (this.#path.includes('\0')) throw this.#notFound()
    if (folder === undefined) return open(resolve(root, this.#path), constants.O_RDONLY | constants.O_NONBLOCK)
    const path = `/${this.#path}`
    if (!isPlainPath(path) || climbs(folder)) throw this.#notFound()
    return openInside(resolve(root, folder), path, isPlainPath)
  }

  #notFound(): HttpError {
    return new HttpError(404, 'not_found', `Nothing is here: ${this.ctx.path}`)
  }

  async #replyOf(handle: FileHandle): Promise<ReadyReply> {
    const { ctx } = this
    let handedOver = false
    try {
      const { status, headers, part, bytes } = await this.#answer(handle)
      if (part === undefined) return new StreamReply(status, headers, 0, (response) => response.end())
      const { start, length } = part
      if (bytes !== undefined) {
        const sent = bytes.subarray(start, start + length)
        return new StreamReply(status, headers, length, (response) => response.end(sent))
      }
      if (!ctx.closed) handedOver = true
      const failed = (error: unknown): void => this.#source.onFailure(this.#path, error)
      let isSending = false
      ctx.response.once('close', () => {
        if (!isSending) handle.close().catch(failed)
      })
      return new StreamReply(status, headers, length, (response) => {
        isSending = true
        void sendFile(handle, part, response, failed)
      })
    } finally {
      if (!handedOver) await handle.close()
    }
  }

  /** Decides what to send of an open file. */
  async #answer(handle: FileHandle) {
    const { ctx } = this
    let stats = await handle.stat()
    if (!stats.isFile()) throw this.#notFound()
    const readWhole = stats.size <= smallMaxBytes
    const nowMs = Date.now()
    if (!readWhole && !isSettled(stats, nowMs) && isSettled(stats, nowMs + fineStepMs)) {
      await delay(fineStepMs) // Else a download of a new file could not be resumed: its ETag would be weak.
      stats = await handle.stat()
    }
    const type = this.#options.type ?? ctx.outgoingIfAny?.get('Content-Type') ?? contentTypeOf(this.#path)
    this.#setFields(type)
    const { plain } = await describeFile(handle, {
      stats,
      nowMs: Date.now(),
      readWhole,
      type,
      cacheControl: ctx.outgoingIfAny?.get('Cache-Control') ?? 'private, no-cache',
      varies: false,
      etag: ctx.outgoingIfAny?.get('ETag'),
    })
    const { bytes, headers, size } = plain
    if (ctx.status === 200) ctx.status = 0 // It may become 206, 304 or 412.
    const isConditional = ctx.status === 0 && (ctx.method === 'GET' || ctx.method === 'HEAD')
    if (isConditional) return { ...answerWith(plain, ctx), bytes }
    return { status: 200, headers, part: { start: 0, length: size }, bytes }
  }

  #setFields(type: string): void {
    const { in: folder, name, inline = false, maxAge_s } = this.#options
    const { outgoing } = this.ctx
    if (maxAge_s !== undefined) outgoing.set('Cache-Control', `private, max-age=${maxAge_s}`)
    if (name !== undefined) outgoing.set('Content-Disposition', dispositionOf(inline ? 'inline' : 'attachment', name))
    const isShown = !/^\s*attachment/i.test(outgoing.get('Content-Disposition') ?? '')
    if (folder !== undefined && isShown && activeType.test(type)) outgoing.append('Content-Security-Policy', 'sandbox')
  }
}

/** Whether a folder has `..` after a name: an action has put a text from the client into it. */
function climbs(folder: string): boolean {
  const names = folder.split('/').filter((name) => name !== '' && name !== '.')
  const first = names.findIndex((name) => name !== '..')
  return folder.includes('\0') || (first >= 0 && names.includes('..', first))
}

/**
 * The name of a download, in the form for every client and in UTF-8 (RFC 6266, section 4.3; RFC 8187). Slashes
 * become underscores.
 */
function dispositionOf(kind: 'inline' | 'attachment', name: string): string {
  const plain = name.toWellFormed().replace(/[\u0000-\u001f\u007f]/g, '').replace(/[/\\]/g, '_')
  const ascii = plain.replace(/[^\x20-\x7e]|["%]/g, '_')
  const percent = (mark: string): string => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`
  const encoded = encodeURIComponent(plain).replace(/['()*]/g, percent)
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encoded}`
}

function checkArguments(path: unknown, options: FileOptions): void {
  const wrong = (what: string, value: unknown): TypeError =>
    new TypeError(`Cannot send a file: ${what}: it is ${value === null ? 'null' : typeof value}`)
  if (typeof path !== 'string') throw wrong('its path must be a string', path)
  const unknown = Object.keys(options).find((key) => !knownOptions.includes(key))
  if (unknown !== undefined) {
    throw new TypeError(`Cannot send a file: there is no option "${unknown}": there are ${knownOptions.join(', ')}`)
  }
  for (const key of ['in', 'name', 'type'] as const) {
    const value = options[key]
    if (value !== undefined && typeof value !== 'string') throw wrong(`${key} must be a string`, value)
  }
  const { maxAge_s } = options
  if (maxAge_s !== undefined && !(Number.isInteger(maxAge_s) && maxAge_s >= 0)) {
    throw new TypeError(`Cannot send a file: maxAge_s must be a whole number from 0: it is ${String(maxAge_s)}`)
  }
}
