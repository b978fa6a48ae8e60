/**
 * The way of log lines from a worker to the primary, which alone writes the files: a pipe for each log, inherited as a
 * file descriptor.
 *
 * Surprise: the worker writes without waiting for an answer, and yet no line is lost when it crashes: what it wrote is in
 * the kernel, and the primary reads it to the end. A primary that does not keep up holds the worker up, as a slow disk
 * would. Each batch has its length before it, so that lines of two workers never mix.
 */
import { writeSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { LogTarget } from '../log/log-file.ts'

/** The file descriptors of a worker: 0 to 2 are the primary's, 3 is the channel of commands. */
export const logFds = { general: 4, access: 5 } as const

const lengthBytes = 4
/** More than any text has, so what claims more is no batch: something else has been written into the pipe. */
const maxBatchBytes = 2 ** 31

/** The end of the worker. */
export class PipeTarget implements LogTarget {
  readonly path: string
  readonly room = Number.POSITIVE_INFINITY
  readonly #fd: number
  readonly #length = Buffer.alloc(lengthBytes)

  /**
   * @param fd a pipe, written with blocking calls
   * @param path the file behind it, for messages
   */
  constructor(fd: number, path: string) {
    this.#fd = fd
    this.path = path
  }

  /** Writes the whole batch. */
  write(bytes: Uint8Array, offset: number): number {
    const batch = bytes.subarray(offset)
    this.#length.writeUInt32BE(batch.length)
    this.#writeAll(this.#length)
    this.#writeAll(batch)
    return batch.length
  }

  open(): void {}
  reopen(): void {}
  batchWritten(): void {}
  close(): void {}

  #writeAll(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at)
  }
}

/**
 * The end of the primary: gives each batch as text.
 * @param take is given whole lines
 * @param onGarbage called when something else than batches comes, at most once: nothing is read any more
 * @returns resolves when the pipe has ended; with the bytes of a batch that its writer, being killed, did not end: its
 *   whole lines have been given
 */
export function readLogPipe(pipe: Readable, take: (lines: string) => void, onGarbage: () => void): Promise<number> {
  let chunks: Buffer[] = []
  let held = 0
  let wanted = lengthBytes
  let inBatch = false

  function handOver(bytes: Buffer): void {
    if (inBatch) {
      take(bytes.toString('utf8'))
      wanted = lengthBytes
    } else {
      wanted = bytes.readUInt32BE()
    }
    inBatch = !inBatch
  }

  pipe.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    held += chunk.length
    if (held < wanted) return
    let bytes = Buffer.concat(chunks)
    while (bytes.length >= wanted) {
      const [part, rest] = [bytes.subarray(0, wanted), bytes.subarray(wanted)]
      bytes = rest
      handOver(part)
    }
    if (wanted > maxBatchBytes) {
      onGarbage()
      pipe.destroy()
    }
    chunks = [bytes]
    held = bytes.length
  })
  return new Promise((resolve) => {
    pipe.on('error', () => pipe.destroy()) // Its writer is gone, as with an end.
    pipe.on('close', () => {
      const rest = inBatch ? Buffer.concat(chunks) : Buffer.alloc(0)
      const end = rest.lastIndexOf(10) + 1
      if (end > 0) take(rest.toString('utf8', 0, end))
      resolve(rest.length - end)
    })
  })
}
