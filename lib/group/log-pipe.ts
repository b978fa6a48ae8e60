/**
 * Sends log lines from a worker to the primary, which alone writes the files: one pipe for each log, inherited as a
 * file descriptor. A batch of lines is preceded by its length.
 *
 * When a worker crashes no line is lost: its batches are in the kernel, and the primary reads them to the end. When the
 * primary hangs the workers go on: batches that the pipe does not accept wait in memory, and beyond a limit lines are
 * lost and counted, as with a full disk.
 */
import { writeSync, writevSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { codeOf, type LogTarget } from '../log/log-file.ts'

/** The file descriptors of the pipes in a worker: 0 to 2 are the primary's own, 3 is the channel. */
export const logFds = { general: 4, access: 5 } as const

const lengthBytes = 4
/** No batch is longer, so a greater length means that something else has been written into the pipe. */
const maxBatchBytes = 2 ** 31

/** The most bytes of one log that wait in memory. */
const maxWaitingBytes = 4 * 2 ** 20
/** Milliseconds until a full pipe is tried again. */
const retryMs = 10
/** The longest time that a process that ends waits for the primary, in milliseconds. */
const closeMs = 1000

/** Keeps descriptors in non-blocking mode, which Node sets for sockets only. */
const held: Socket[] = []

/** Makes writes to an inherited pipe fail with EAGAIN instead of blocking. Returns the descriptor. */
export function withoutBlocking(fd: number): number {
  held.push(new Socket({ fd, readable: false, writable: true }).unref())
  return fd
}

/** The worker's end of a pipe. */
export class PipeTarget implements LogTarget {
  readonly path: string
  readonly room = Number.POSITIVE_INFINITY
  readonly #fd: number
  readonly #length = Buffer.alloc(lengthBytes)
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  #retry: NodeJS.Timeout | undefined = undefined

  /**
   * @param fd a non-blocking pipe
   * @param path the log file, for messages
   */
  constructor(fd: number, path: string) {
    this.#fd = fd
    this.path = path
  }

  /** Accepts the whole batch. Throws EAGAIN when too many bytes wait already. */
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

  /** Waits up to a second for the primary to read. */
  close(): void {
    const end = performance.now() + closeMs
    try {
      for (this.#sendWaiting(); this.#waiting.length > 0 && performance.now() < end; this.#sendWaiting()) sleep(retryMs)
    } catch {
      // The primary has ended, and the lines are lost: see below.
    }
    clearTimeout(this.#retry)
    if (this.#waiting.length === 0) return
    const lost = `the primary process did not read the last ${this.#waitingBytes} bytes`
    process.stderr.write(`The log ${this.path}: ${lost}\n`)
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
      return // The next write gets the same error and reports it.
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

/** Returns the number of bytes written; 0 when the pipe is full. */
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
 * The primary's end of a pipe: reads batches as text.
 * @param take called with whole lines
 * @param onGarbage called at most once, when the bytes are not batches; reading ends then
 * @returns a promise that resolves when the pipe has ended, with the number of bytes lost: a worker that is killed may
 *   leave a batch incomplete, of which only the whole lines are taken
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
    pipe.on('error', () => pipe.destroy()) // The writer has ended.
    pipe.on('close', () => {
      const rest = inBatch ? Buffer.concat(chunks) : Buffer.alloc(0)
      const end = rest.lastIndexOf(10) + 1
      if (end > 0) take(rest.toString('utf8', 0, end))
      resolve(rest.length - end)
    })
  })
}
