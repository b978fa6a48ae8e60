/**
 * The frames that a connection still has to send. The frames of one turn of the event loop are sent with one write, or
 * several when they are long.
 *
 * While the operating system accepts no data, frames are gathered in buffers of 16 KiB instead of being written to the
 * socket one by one. A socket needs some 250 bytes of memory for each pending write: a peer that sends pings and never
 * reads would otherwise cost a hundred times the bytes of its pongs.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { headerSize, writeHeader } from './frame.ts'

const firstGatheredBytes = 256
const maxGatheredBytes = 16_384

/** The sending side of one connection. */
export class Outbox {
  readonly #socket: Socket
  readonly #onWritten: () => void
  readonly #written = (): void => {
    this.#pending -= 1
    this.#flush()
    this.#onWritten()
  }
  #gathered: Buffer | undefined = undefined
  #length = 0
  /** Writes of this outbox that the operating system has not accepted yet. */
  #pending = 0
  #scheduled = false

  /** @param onWritten called when the operating system has accepted a write */
  constructor(socket: Socket, onWritten: () => void) {
    this.#socket = socket
    this.#onWritten = onWritten
  }

  /** Bytes that the operating system has not accepted yet. */
  get bytes(): number {
    return this.#socket.writableLength + this.#length
  }

  /** Whether writes are pending, because the peer does not read fast enough. */
  get blocked(): boolean {
    return this.#socket.writableLength > 0
  }

  /** Sends a frame. Copies the payload. */
  add(opcode: number, payload: string | Buffer): void {
    const length = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length
    const target = this.#reserve(headerSize(length) + length)
    const start = writeHeader(target, this.#length, opcode, length)
    if (typeof payload === 'string') target.write(payload, start)
    else target.set(payload, start)
    this.#length = start + length
    if (this.#length >= maxGatheredBytes) return this.#write()
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(() => {
      this.#scheduled = false
      this.#flush()
    })
  }

  /** Writes everything and ends the socket. */
  end(): void {
    this.#write()
    this.#socket.end()
  }

  /**
   * Sends the gathered frames, unless an earlier write of the outbox is pending: then they follow it. When only the 101
   * response is pending, no callback of the outbox will run, so the frames are written at once.
   */
  #flush(): void {
    if (!this.blocked || this.#pending === 0) this.#write()
  }

  #write(): void {
    if (this.#gathered === undefined) return
    const gathered = this.#gathered.subarray(0, this.#length)
    this.#gathered = undefined
    this.#length = 0
    this.#pending += 1
    this.#socket.write(gathered, this.#written)
  }

  /** Returns the buffer of gathered frames with room for `count` more bytes. */
  #reserve(count: number): Buffer {
    if (this.#length + count > maxGatheredBytes) this.#write()
    const needed = this.#length + count
    if (this.#gathered !== undefined && needed <= this.#gathered.length) return this.#gathered
    const doubled = this.#gathered === undefined ? firstGatheredBytes : this.#gathered.length * 2
    const grown = Buffer.allocUnsafe(Math.max(needed, doubled))
    this.#gathered?.copy(grown, 0, 0, this.#length)
    this.#gathered = grown
    return grown
  }
}
