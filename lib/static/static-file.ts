/**
 * One static file as the server holds it: its validators, its header fields, its bytes when it is small; and how a
 * large one is sent.
 *
 * The ETag of a small file is a hash of its bytes, so it survives a deployment that only touches times and is the same
 * on every machine. The ETag of a large file is a hash of its inode, size and times. It is weak shortly after a change,
 * since a second change could leave the same times (RFC 9110 section 8.8.1).
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { extname } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants as zlib, gzip } from 'node:zlib'
import { isSettled } from '../files/file-version.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { compressAboveBytes, type Coding } from '../http/compress.ts'
import type { ByteRange, Representation, Validators } from './conditional.ts'

/** A file with its representations. */
export interface StaticFile {
  /** Its stats when it was read. */
  readonly stats: Stats
  /** Whether it was read so soon after its last change that another change might not show in its times. */
  readonly fresh: boolean
  /** The bytes as stored: for a compressed copy, those of the copy, with the type of the original. */
  readonly plain: Representation
  /** Undefined: never compressed here. Returns undefined when the compressed file is not smaller. */
  readonly compress: ((coding: FileCoding) => MaybePromise<Representation | undefined>) | undefined
}

/** A coding that the server compresses files with, once per version of a file. */
export type FileCoding = 'br' | 'gzip'

/** How a file is compressed: at levels that balance speed and size. */
const compressors: Readonly<Record<FileCoding, (bytes: Uint8Array) => Promise<Buffer>>> = {
  br: (bytes) => brotliAsync(bytes, { params: brotliParameters }),
  gzip: (bytes) => gzipAsync(bytes, { level: 6 }),
}
const brotliAsync = promisify(brotliCompress)
const gzipAsync = promisify(gzip)
const brotliParameters = { [zlib.BROTLI_PARAM_QUALITY]: 6, [zlib.BROTLI_PARAM_MODE]: zlib.BROTLI_MODE_TEXT }
const tagLength = 22

/** Larger pieces, up to 512 KiB, were no faster for a 4 MiB file, and each slow client holds one or two. */
const pieceBytes = 65_536

/** The errors of the file system for a path without a file. */
const absent = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'])

const utf8 = '; charset=utf-8'

/** Text is always declared as UTF-8. JSON has no charset (RFC 8259 section 11), and XML declares its own. */
const types: ReadonlyMap<string, string> = new Map([
  ['aac', 'audio/aac'],
  ['apng', 'image/apng'],
  ['atom', 'application/atom+xml'],
  ['avif', 'image/avif'],
  ['bmp', 'image/bmp'],
  ['cjs', `text/javascript${utf8}`],
  ['css', `text/css${utf8}`],
  ['csv', `text/csv${utf8}`],
  ['doc', 'application/msword'],
  ['docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document'],
  ['epub', 'application/epub+zip'],
  ['flac', 'audio/flac'],
  ['geojson', 'application/geo+json'],
  ['gif', 'image/gif'],
  ['gz', 'application/gzip'],
  ['htm', `text/html${utf8}`],
  ['html', `text/html${utf8}`],
  ['ico', 'image/x-icon'],
  ['ics', `text/calendar${utf8}`],
  ['jpeg', 'image/jpeg'],
  ['jpg', 'image/jpeg'],
  ['js', `text/javascript${utf8}`],
  ['json', 'application/json'],
  ['jsonld', 'application/ld+json'],
  ['jxl', 'image/jxl'],
  ['m4a', 'audio/mp4'],
  ['m4v', 'video/mp4'],
  ['map', 'application/json'],
  ['md', `text/markdown${utf8}`],
  ['mjs', `text/javascript${utf8}`],
  ['mov', 'video/quicktime'],
  ['mp3', 'audio/mpeg'],
  ['mp4', 'video/mp4'],
  ['odp', 'application/vnd.oasis.opendocument.presentation'],
  ['ods', 'application/vnd.oasis.opendocument.spreadsheet'],
  ['odt', 'application/vnd.oasis.opendocument.text'],
  ['oga', 'audio/ogg'],
  ['ogg', 'audio/ogg'],
  ['ogv', 'video/ogg'],
  ['opus', 'audio/ogg'],
  ['otf', 'font/otf'],
  ['pdf', 'application/pdf'],
  ['png', 'image/png'],
  ['ppt', 'application/vnd.ms-powerpoint'],
  ['pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
  ['rss', 'application/rss+xml'],
  ['rtf', 'application/rtf'],
  ['svg', 'image/svg+xml'],
  ['tar', 'application/x-tar'],
  ['tif', 'image/tiff'],
  ['tiff', 'image/tiff'],
  ['ttf', 'font/ttf'],
  ['txt', `text/plain${utf8}`],
  ['vcf', `text/vcard${utf8}`],
  ['vtt', `text/vtt${utf8}`],
  ['wasm', 'application/wasm'],
  ['wav', 'audio/wav'],
  ['weba', 'audio/webm'],
  ['webm', 'video/webm'],
  ['webmanifest', 'application/manifest+json'],
  ['webp', 'image/webp'],
  ['woff', 'font/woff'],
  ['woff2', 'font/woff2'],
  ['xhtml', 'application/xhtml+xml'],
  ['xls', 'application/vnd.ms-excel'],
  ['xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'],
  ['xml', 'application/xml'],
  ['zip', 'application/zip'],
])

/**
 * Returns the Content-Type of a file, by its extension, ignoring case.
 * @param custom types by lower-case extension without its dot; they take precedence
 */
export function contentTypeOf(fileName: string, custom?: ReadonlyMap<string, string>): string {
  const extension = extname(fileName).slice(1).toLowerCase()
  return custom?.get(extension) ?? types.get(extension) ?? 'application/octet-stream'
}

/** Whether an error means that there is no such file. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && absent.has(String(error.code))
}

/**
 * Sends a part of a file as the body of the response, ends the response and closes the handle, also when the client
 * disconnects. If the file has become shorter, the connection is cut: after a normal end the client would wait for the
 * rest, or mistake the next response for it.
 *
 * One buffer is used for all pieces. A stream would allocate one for each, which with slow clients adds up to megabytes
 * of garbage.
 * @param onFailure called when the file could not be read to the end of the part, after the connection was cut
 */
export async function sendFile(
  handle: FileHandle,
  { start, length }: ByteRange,
  response: ServerResponse,
  onFailure: (error: unknown) => void,
): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(pieceBytes, length))
  try {
    for (let sent = 0; sent < length && !response.destroyed; ) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, length - sent), start + sent)
      if (bytesRead === 0) throw new Error(`the file ended ${length - sent} bytes early`)
      sent += bytesRead
      await write(response, buffer.subarray(0, bytesRead))
    }
    if (!response.destroyed) response.end()
  } catch (error) {
    response.destroy()
    onFailure(error)
  } finally {
    handle.close().catch(onFailure)
  }
}

/** Resolves when the system has accepted the piece, or the client has disconnected. */
function write(response: ServerResponse, piece: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve()
    response.once('close', resolve)
    response.write(piece, () => {
      response.off('close', resolve)
      resolve()
    })
  })
}

/** The options for describing an open file. */
interface DescribeOptions {
  /** Of the handle. */
  readonly stats: Stats
  /** Milliseconds since 1970. */
  readonly nowMs: number
  /** Whether to read it into memory; otherwise it is sent from the handle and never compressed. */
  readonly readWhole: boolean
  /** The Content-Type; for a compressed copy, that of the original. */
  readonly type: string
  readonly cacheControl: string
  /** Whether some clients get the file compressed. */
  readonly varies: boolean
  /** The coding of a compressed copy; undefined for the file itself. */
  readonly coding?: Coding | undefined
  /** The ETag, if the application has one for the file; default: made here. */
  readonly etag?: string | undefined
}

/** Describes an open file. */
export async function describeFile(handle: FileHandle, options: DescribeOptions): Promise<StaticFile> {
  const { stats, nowMs, readWhole, coding, varies } = options
  const fresh = !isSettled(stats, nowMs)
  // A date in the future must not be sent (RFC 9110 section 8.8.2.1), and one before 1970 is of no use.
  const modifiedMs = Math.floor(Math.max(0, Math.min(stats.mtimeMs, nowMs)) / 1000) * 1000
  if (!readWhole) {
    const { dev, ino, size, mtimeMs, ctimeMs } = stats
    const tag = hashOf([dev, ino, size, mtimeMs, ctimeMs].join(':'))
    const etag = options.etag ?? (fresh ? `W/"${tag}"` : `"${tag}"`)
    const plain = representation({ ...options, etag, modifiedMs, size })
    return { stats, fresh, plain, compress: undefined }
  }

  const bytes = await handle.readFile()
  const tag = hashOf(bytes)
  const content = { ...options, etag: options.etag ?? `"${tag}"`, modifiedMs, size: bytes.length, bytes }
  const plain = representation(content)
  if (!varies || coding !== undefined || bytes.length <= compressAboveBytes) {
    return { stats, fresh, plain, compress: undefined }
  }

  const pack = async (into: FileCoding): Promise<Representation | undefined> => {
    const packed = await compressors[into](bytes)
    if (packed.length >= bytes.length) return undefined
    return representation({ ...content, etag: `"${tag}-${into}"`, size: packed.length, bytes: packed, coding: into })
  }
  const packed = new Map<FileCoding, MaybePromise<Representation | undefined>>()
  const compress = (into: FileCoding): MaybePromise<Representation | undefined> => {
    if (!packed.has(into)) {
      const packing = pack(into).catch(() => undefined) // The request is answered with the plain bytes.
      packed.set(into, packing)
      void packing.then((done) => packed.set(into, done))
    }
    return packed.get(into)
  }
  return { stats, fresh, plain, compress }
}

interface Content extends Validators, Pick<DescribeOptions, 'type' | 'cacheControl' | 'varies' | 'coding'> {
  readonly size: number
  readonly bytes?: Uint8Array
}

function representation(content: Content): Representation {
  const { etag, type, cacheControl, modifiedMs, size, bytes, varies, coding } = content
  const lastModified = new Date(modifiedMs).toUTCString()
  const nosniff = ['X-Content-Type-Options', 'nosniff']
  const commonHeaders = [...nosniff, 'Cache-Control', cacheControl, 'ETag', etag, 'Last-Modified', lastModified]
  if (varies) commonHeaders.push('Vary', 'Accept-Encoding')
  const aboutBody = ['Content-Type', type]
  if (coding === undefined) aboutBody.push('Accept-Ranges', 'bytes')
  else aboutBody.push('Content-Encoding', coding)
  const fixed = [...aboutBody, ...commonHeaders]
  const headersOf = (length: number): readonly string[] => [...fixed, 'Content-Length', String(length)]
  return { etag, modifiedMs, size, bytes, commonHeaders, headers: headersOf(size), headersOf }
}

function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, tagLength)
}
