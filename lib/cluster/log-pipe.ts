/**
 * Sends log lines from a worker to the primary, the only process that writes the files. Each log has a pipe, inherited
 * as a file descriptor.
 *
 * When a worker crashes, no line is lost: its lines are in the kernel, and the primary reads them to the end. When the
 * primary hangs, the workers keep running: bytes that the pipe does not accept are buffered, and beyond a limit lines
 * are lost and counted, as with a full disk.
 */
import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { codeOf, type LogTarget } from '../log/log-file.ts'

/** The file descriptors of the pipes in a worker: 0 to 2 are inherited from the primary, 3 is the channel. */
export const logFds = { general: 4, access: 5, audit: 6 } as const

/** The maximum bytes of one log buffered in memory. */
const maxWaitingBytes = 4 * 2 ** 20
/** Milliseconds before a write to a full pipe is retried. */
const retryMs = 10
/** The longest time that an ending process waits for the primary, in milliseconds. */
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

  /** Accepts the whole batch. Throws EAGAIN when too many bytes are buffered. */
  write(bytes: Uint8Array, offset: number): number {
    const batch = bytes.subarray(offset)
    this.#sendWaiting()
    if (this.#waiting.length > 0 && this.#waitingBytes + batch.length > maxWaitingBytes) {
      throw Object.assign(new Error('EAGAIN: the primary process reads no lines'), { code: 'EAGAIN' })
    }
    const sent = this.#waiting.length > 0 ? 0 : unlessFull(() => writeSync(this.#fd, batch))
    if (sent < batch.length) this.#keep(Buffer.from(batch.subarray(sent))) // The caller may reuse its memory.
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
    this.#retry ??= setTimeout(() => this.#retryWrite(), retryMs).unref()
  }

  #retryWrite(): void {
    this.#retry = undefined
    try {
      this.#sendWaiting()
    } catch {
      return // The next write gets the same error and reports it.
    }
    if (this.#waiting.length > 0) this.#retry = setTimeout(() => this.#retryWrite(), retryMs).unref()
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
 * The primary's end of a pipe: reads whole lines, each with the following lines that begin with a space, such as the
 * frames of a stack. Resolves when the pipe has ended. An incomplete last line of a killed worker is lost.
 */
export function readLogPipe(pipe: Readable, take: (lines: string) => void): Promise<void> {
  let held: string[] = []
  pipe.setEncoding('utf8')
  pipe.on('data', (chunk: string) => {
    held.push(chunk)
    if (!chunk.includes('\n')) return
    const text = held.join('')
    const end = text.endsWith('\n') ? text.length : startOfLast(text)
    if (end > 0) take(text.slice(0, end))
    held = [text.slice(end)]
  })
  return new Promise((resolve) => {
    pipe.on('error', () => pipe.destroy()) // The writer has ended.
    pipe.on('close', () => {
      const rest = held.join('')
      const end = rest.lastIndexOf('\n') + 1
      if (end > 0) take(rest.slice(0, end))
      resolve()
    })
  })
}

/** Returns where the last line begins that does not continue the line above it. */
function startOfLast(text: string): number {
  let at = text.lastIndexOf('\n')
  while (at > 0 && text[at + 1] === ' ') at = text.lastIndexOf('\n', at - 1)
  return at + 1
}
