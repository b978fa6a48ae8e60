/**
 * One static file as the server holds it: its validators, its header fields, and its bytes when it is small.
 *
 * Surprise: a small file's ETag is a hash of its bytes, so it outlives a deployment that only touches times and is the
 * same on every machine. A large file's is a hash of its place, size and times. That is weak within two seconds of a
 * change, since a second change could leave the same times (RFC 9110 section 8.8.1).
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { settledMs } from '../storage/file-version.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { compressAboveBytes, isCompressible } from '../http/compress.ts'
import type { Validators } from './conditional.ts'
import { readBytes } from './file-body.ts'
import { contentTypeOf } from './mime.ts'

/** What is sent for a file: as it is, or compressed. */
export interface Representation extends Validators {
  readonly size: number
  /** For 200, with Content-Length: name and value in turn. */
  readonly headers: readonly string[]
  /** The same for a part of so many bytes. */
  headersOf(length: number): readonly string[]
  /** For 304 and 412, and part of the others. */
  readonly commonHeaders: readonly string[]
  /** undefined: to be read from the file. */
  readonly bytes: Uint8Array | undefined
}

/** A file, the state it was read in, and what can be sent for it. */
export interface StaticFile {
  readonly stats: Stats
  /** Whether its last change was so short before it was read that another one might not show. */
  readonly fresh: boolean
  readonly plain: Representation
  /** undefined: never compressed. Its result is undefined when compressing makes it no smaller. */
  readonly compress: (() => MaybePromise<Representation | undefined>) | undefined
}

const gzipAsync = promisify(gzip)
/** Once per version of a file, so the time does not matter: 6 is zlib's own balance. */
const fileGzipLevel = 6
const tagLength = 22

/**
 * Describes an open file.
 * @param stats of the handle
 * @param nowMs milliseconds since 1970
 * @param readWhole whether to read it into memory; else it is sent from the handle and never compressed
 */
export async function describeFile(
  name: string,
  handle: FileHandle,
  stats: Stats,
  nowMs: number,
  readWhole: boolean,
): Promise<StaticFile> {
  const type = contentTypeOf(name)
  const fresh = nowMs - stats.ctimeMs < settledMs
  // A date in the future must not be sent (RFC 9110 section 8.8.2.1), and one before 1970 has no use.
  const modifiedMs = Math.floor(Math.max(0, Math.min(stats.mtimeMs, nowMs)) / 1000) * 1000
  if (!readWhole) {
    const { dev, ino, size, mtimeMs, ctimeMs } = stats
    const tag = hashOf([dev, ino, size, mtimeMs, ctimeMs].join(':'))
    const etag = fresh ? `W/"${tag}"` : `"${tag}"`
    return { stats, fresh, plain: representation({ etag, type, modifiedMs, size }), compress: undefined }
  }

  const bytes = await readBytes(handle, stats.size)
  const tag = hashOf(bytes)
  const compressible = bytes.length > compressAboveBytes && isCompressible(type)
  const content = { etag: `"${tag}"`, type, modifiedMs, size: bytes.length, bytes, varies: compressible }
  const plain = representation(content)
  if (!compressible) return { stats, fresh, plain, compress: undefined }

  const pack = async (): Promise<Representation | undefined> => {
    const zipped = await gzipAsync(bytes, { level: fileGzipLevel })
    if (zipped.length >= bytes.length) return undefined
    return representation({ ...content, etag: `"${tag}-gz"`, size: zipped.length, bytes: zipped, coding: 'gzip' })
  }
  let packed: MaybePromise<Representation | undefined> | 'not yet' = 'not yet'
  const compress = (): MaybePromise<Representation | undefined> => {
    if (packed === 'not yet') {
      const packing = pack().catch(() => undefined) // No reason to fail a request: the bytes go out as they are.
      packed = packing
      void packing.then((done) => (packed = done))
    }
    return packed
  }
  return { stats, fresh, plain, compress }
}

interface Content extends Validators {
  readonly type: string
  readonly size: number
  readonly bytes?: Uint8Array
  readonly varies?: boolean
  readonly coding?: string
}

function representation({ etag, type, modifiedMs, size, bytes, varies, coding }: Content): Representation {
  // `no-cache` keeps a copy but asks each time whether it is still good: a change is seen at once.
  const commonHeaders = ['Cache-Control', 'no-cache', 'ETag', etag, 'Last-Modified', new Date(modifiedMs).toUTCString()]
  if (varies === true) commonHeaders.push('Vary', 'Accept-Encoding')
  const aboutBody = ['Content-Type', type, 'X-Content-Type-Options', 'nosniff']
  if (coding === undefined) aboutBody.push('Accept-Ranges', 'bytes')
  else aboutBody.push('Content-Encoding', coding)
  const fixed = [...aboutBody, ...commonHeaders]
  const headersOf = (length: number): readonly string[] => [...fixed, 'Content-Length', String(length)]
  return { etag, modifiedMs, size, bytes, commonHeaders, headers: headersOf(size), headersOf }
}

function hashOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, tagLength)
}
