/**
 * The way of log lines from a worker to the primary, which alone writes the files: a pipe for each log, inherited as a
 * file descriptor.
 *
 * Surprise: no line is lost when a worker crashes, since what it wrote is in the kernel, and the primary reads it to the
 * end. A primary that stands still must not hold its workers up: what the pipe does not take waits in memory, and past a
 * bound lines are lost and counted, as with a full disk. Each batch has its length before it, so that lines of two workers
 * never mix.
 */
import { writeSync, writevSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { codeOf, type LogTarget } from '../log/log-file.ts'

/** The file descriptors of a worker: 0 to 2 are the primary's, 3 is the channel of commands. */
export const logFds = { general: 4, access: 5 } as const

const lengthBytes = 4
/** More than any text has, so what claims more is no batch: something else has been written into the pipe. */
const maxBatchBytes = 2 ** 31

/** The most bytes of one log that wait for a primary which does not read. */
const maxWaitingBytes = 4 * 2 ** 20
/** Milliseconds until a pipe that was full is tried again. */
const retryMs = 10
/** The longest that the end of a process waits for the primary, in milliseconds. */
const closeMs = 1000

/** Sockets that hold their descriptors in the mode that does not block, which Node gives to sockets alone. */
const held: Socket[] = []

/** Makes writes to an inherited pipe fail with EAGAIN where they would block. Returns the descriptor. */
export function withoutBlocking(fd: number): number {
  held.push(new Socket({ fd, readable: false, writable: true }).unref())
  return fd
}

/** The end of the worker. */
export class PipeTarget implements LogTarget {
  readonly path: string
  readonly room = Number.POSITIVE_INFINITY
  readonly #fd: number
  readonly #length = Buffer.alloc(lengthBytes)
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #retry: NodeJS.Timeout | undefined = undefined

  /**
   * @param fd a pipe that does not block
   * @param path the file behind it, for messages
   */
  constructor(fd: number, path: string) {
    this.#fd = fd
    this.path = path
  }

  /** Takes the whole batch, or throws EAGAIN: too much waits already. */
  write(bytes: Uint8Array, offset: number): number {
    const batch = bytes.subarray(offset)
    this.#sendWaiting()
    if (this.#waiting.length > 0 && this.#waitingBytes + batch.length > maxWaitingBytes) {
      throw Object.assign(new Error('EAGAIN: the primary process reads no lines'), { code: 'EAGAIN' })
    }
    this.#length.writeUInt32BE(batch.length)
    const frame = [this.#length, batch]
    const sent = this.#waiting.length > 0 ? 0 : unlessFull(() => writevSync(this.#fd, frame))
    if (sent < lengthBytes + batch.length) this.#keep(Buffer.concat(frame).subarray(sent))
    return batch.length
  }

  open(): void {}
  reopen(): void {}
  isAtPath(): boolean {
    return true
  }
  batchWritten(): void {}

  /** Waits for the primary for a second at most. */
  close(): void {
    const end = performance.now() + closeMs
    try {
      for (this.#sendWaiting(); this.#waiting.length > 0 && performance.now() < end; this.#sendWaiting()) sleep(retryMs)
    } catch {
      // The primary is gone, and what it has not read with it: that is told below.
    }
    clearTimeout(this.#retry)
    if (this.#waiting.length === 0) return
    process.stderr.write(`The log ${this.path}: the primary process did not read the last ${this.#waitingBytes} bytes\n`)
    this.#waiting = []
    this.#waitingBytes = 0
  }

  #keep(bytes: Uint8Array): void {
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    this.#retry ??= setTimeout(() => this.#tryAgain(), retryMs).unref()
  }

  #tryAgain(): void {
    this.#retry = undefined
    try {
      this.#sendWaiting()
    } catch {
      return // The next write meets the same error, and tells it.
    }
    if (this.#waiting.length > 0) this.#retry = setTimeout(() => this.#tryAgain(), retryMs).unref()
  }

  #sendWaiting(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const bytes = first
      const sent = unlessFull(() => writeSync(this.#fd, bytes))
      this.#waitingBytes -= sent
      if (sent < bytes.length) {
        this.#waiting[0] = bytes.subarray(sent)
        return
      }
      this.#waiting.shift()
    }
  }
}

/** Returns what a write took, 0 where the pipe is full. */
function unlessFull(write: () => number): number {
  try {
    return write()
  } catch (error) {
    if (codeOf(error) === 'EAGAIN') return 0
    throw error
  }
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
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
