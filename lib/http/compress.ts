/**
 * Content codings: negotiation with the client, which bodies are worth compressing, and compression of a reply.
 *
 * Small bodies are compressed on the main thread: 10 KB take 15 µs there, and 80 µs in the thread pool (Node 20).
 */
import * as zlib from 'node:zlib'

/** A content coding that the server writes (RFC 9110 section 8.4.1; RFC 7932, RFC 8878). */
export type Coding = 'br' | 'gzip' | 'zstd'

/** How a reply is compressed: on this thread, or in the thread pool. */
interface Compressor {
  readonly now: (bytes: Uint8Array, options: object) => Uint8Array
  readonly later: (bytes: Uint8Array, options: object, done: (error: Error | null, packed: Uint8Array) => void) => void
  readonly options: object
}

/** Functions that Node has since 22.15. */
interface Zstandard {
  readonly zstdCompressSync?: Compressor['now']
  readonly zstdCompress: Compressor['later']
}

/** Bodies up to this size, in bytes, are sent uncompressed. */
export const compressAboveBytes = 2048
/** Larger bodies would block this thread for more than 0.2 ms. */
const maxSyncBytes = 65_536

/** Cheapest first: JSON of 64 kB takes 90 µs with zstd, 120 with Brotli, 170 with gzip, at level 1 (Node 24). */
const compressors = new Map<Coding, Compressor>()
const { zstdCompressSync, zstdCompress } = zlib as unknown as Zstandard
if (zstdCompressSync !== undefined) {
  const options = { params: { 100: 1 } } // 100: ZSTD_c_compressionLevel, which the types of Node 20 lack.
  compressors.set('zstd', { now: zstdCompressSync, later: zstdCompress, options })
}
const brotliOptions = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }
compressors.set('br', { now: zlib.brotliCompressSync, later: zlib.brotliCompress, options: brotliOptions })
compressors.set('gzip', { now: zlib.gzipSync, later: zlib.gzip, options: { level: 1 } })

/** The codings of replies, cheapest first. */
export const replyCodings: readonly Coding[] = [...compressors.keys()]

const compressiblePattern =
  /^(?:text\/(?!event-stream\s*(?:;|$))|(?:application\/(?:json|javascript|wasm|xml)|[^\s;]+\+(?:json|xml))\s*(?:;|$))/i
const qPattern = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i

/**
 * Selects a coding by `Accept-Encoding` (RFC 9110 section 12.5.3): of the offered codings the one with the highest
 * weight, by name or by `*`; with equal weights, the first offered.
 * @returns undefined for an uncompressed body: the field is absent or empty, or `identity` has a higher weight. An
 *   element with an invalid weight counts as weight 0.
 */
export function codingFor<Offered extends Coding>(
  acceptEncoding: string | undefined,
  offered: readonly Offered[],
): Offered | undefined {
  if (acceptEncoding === undefined) return undefined
  const weights = new Map<string, number>()
  for (const element of acceptEncoding.split(',')) {
    const semicolon = element.indexOf(';')
    const name = (semicolon < 0 ? element : element.slice(0, semicolon)).trim().toLowerCase()
    const coding = name === 'x-gzip' ? 'gzip' : name
    const weight = semicolon < 0 ? 1 : weightOf(element.slice(semicolon + 1).trim())
    weights.set(coding, Math.max(weight, weights.get(coding) ?? 0))
  }
  const weightFor = (coding: Coding): number => weights.get(coding) ?? weights.get('*') ?? 0
  const highest = Math.max(...offered.map(weightFor))
  if (highest <= 0 || highest < (weights.get('identity') ?? 0)) return undefined
  return offered.find((coding) => weightFor(coding) === highest)
}

/**
 * Whether bodies of a Content-Type are worth compressing: text, JSON, JavaScript, WebAssembly, XML and types built on
 * them, such as SVG. Not `text/event-stream`, whose events must not wait for a compressor.
 */
export function isCompressible(contentType: string): boolean {
  return compressiblePattern.test(contentType)
}

/**
 * Compresses a reply, for speed rather than size: up to 64 KiB synchronously, above that in the thread pool.
 * @param coding one of `replyCodings`
 */
export function compressReply(bytes: Uint8Array, coding: Coding): Uint8Array | Promise<Uint8Array> {
  const { now, later, options } = compressors.get(coding) as Compressor
  if (bytes.byteLength <= maxSyncBytes) return now(bytes, options)
  return new Promise((resolve, reject) => {
    later(bytes, options, (error, packed) => (error === null ? resolve(packed) : reject(error)))
  })
}

function weightOf(parameter: string): number {
  const match = qPattern.exec(parameter)
  return match === null ? 0 : Number(match[1])
}
