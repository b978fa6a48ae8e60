/**
 * Writes a package as npm does, with bytes that depend on its files alone: a tar file (POSIX ustar) inside gzip (RFC
 * 1952) without compression. Surprise: compressors give other bytes with another version of Node or another processor.
 */
import { crc32 } from 'node:zlib'

/** A file of the package. */
export interface PackedFile {
  /** From the root of the package, with `/`. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly isExecutable: boolean
}

/** The time that npm gives to every file: 26 October 1985, in seconds since 1970. */
const mtimeSeconds = 499_162_500
const blockBytes = 512
/** The longest piece of a stored block (RFC 1951, section 3.2.4). */
const storedBytes = 65_535

/** Returns the archive, whose paths begin with `package/`. @throws Error when a path is too long for the format */
export function packFiles(files: readonly PackedFile[]): Buffer {
  const sorted = [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
  const parts = sorted.flatMap((file) => [headerOf(file), file.bytes, Buffer.alloc(-file.bytes.length & (blockBytes - 1))])
  return storeAsGzip(Buffer.concat([...parts, Buffer.alloc(2 * blockBytes)]))
}

function headerOf({ path, bytes, isExecutable }: PackedFile): Buffer {
  const header = Buffer.alloc(blockBytes)
  const [prefix, name] = splitPath(`package/${path}`)
  header.write(name, 0)
  header.write(octal(isExecutable ? 0o755 : 0o644, 7), 100)
  header.write(octal(0, 7), 108)
  header.write(octal(0, 7), 116)
  header.write(octal(bytes.length, 11), 124)
  header.write(octal(mtimeSeconds, 11), 136)
  header.write(' '.repeat(8), 148) // The checksum counts itself as spaces.
  header.write('0', 156)
  header.write('ustar\u000000', 257)
  header.write(octal(0, 7), 329)
  header.write(octal(0, 7), 337)
  header.write(prefix, 345)
  header.write(`${octal(header.reduce((sum, byte) => sum + byte, 0), 6)}\u0000 `, 148)
  return header
}

/** Splits a path of more than 100 bytes at a slash. */
function splitPath(path: string): readonly [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= 100) return ['', path]
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100) return [prefix, name]
  }
  throw new Error(`Cannot pack ${path}: its name is too long for a tar file`)
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0')
}

function storeAsGzip(content: Buffer): Buffer {
  const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]) // No time, no file system.
  const blocks: Buffer[] = []
  for (let at = 0; at < content.length; at += storedBytes) {
    const piece = content.subarray(at, at + storedBytes)
    const start = Buffer.from([at + piece.length === content.length ? 1 : 0, 0, 0, 0, 0])
    start.writeUInt16LE(piece.length, 1)
    start.writeUInt16LE(~piece.length & 0xffff, 3)
    blocks.push(start, piece)
  }
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc32(content), 0)
  trailer.writeUInt32LE(content.length % 2 ** 32, 4)
  return Buffer.concat([header, ...blocks, trailer])
}
