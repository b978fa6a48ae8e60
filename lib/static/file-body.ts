/**
 * Files as bodies: opening, reading whole, and sending in pieces.
 *
 * Surprise: a file that ends before the length that was announced cuts the connection. An ordinary end would have the
 * client wait for the rest, or take the next answer for it.
 */
import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { ByteRange } from './conditional.ts'

/** Larger pieces, up to 512 KiB, were no faster with a file of 4 MiB, and every slow client holds one or two. */
const pieceBytes = 65_536

/** What the file system answers for a name that leads to no file. */
const absent = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'])

/** Not through a link as its last part, and not waiting for the other end of a FIFO that took the file's place. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Opens a file for reading, unless it is a symbolic link. The caller closes the handle. */
export function openForReading(file: string): Promise<FileHandle> {
  return open(file, openFlags)
}

/** Whether an error says that there is no file of that name. */
export function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && absent.has(String(error.code))
}

/** Reads the first `size` bytes, fewer when the file has become shorter. */
export async function readBytes(handle: FileHandle, size: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafeSlow(size)
  let length = 0
  while (length < size) {
    const { bytesRead } = await handle.read(bytes, length, size - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}

/**
 * Sends a part of a file as the response's body, ends the response and closes the handle, also when the client leaves.
 * @param onFailure told why when the file could not be read to the end of the part; the connection has been cut
 */
export function sendFile(
  handle: FileHandle,
  part: ByteRange,
  response: ServerResponse,
  onFailure: (error: unknown) => void,
): void {
  let failure: unknown
  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      yield* readPieces(handle, part)
    } catch (error) {
      failure = error
      throw error
    }
  }
  pipeline(pieces, response, () => {
    if (failure !== undefined) onFailure(failure)
    handle.close().catch(onFailure)
  })
}

async function* readPieces(handle: FileHandle, { start, length }: ByteRange): AsyncGenerator<Uint8Array> {
  const end = start + length
  let position = start
  while (position < end) {
    const piece = Buffer.allocUnsafeSlow(Math.min(pieceBytes, end - position))
    const { bytesRead } = await handle.read(piece, 0, piece.length, position)
    if (bytesRead === 0) throw new Error(`the file ended ${end - position} bytes early`)
    position += bytesRead
    yield bytesRead === piece.length ? piece : piece.subarray(0, bytesRead)
  }
}
