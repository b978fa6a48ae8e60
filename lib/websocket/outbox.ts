/**
 * What a connection still has to send. The short frames of one turn of the event loop leave in one write; a long
 * payload leaves at once and without a copy.
 *
 * Surprise: while the operating system takes nothing, frames are not handed to the socket one by one but gathered in
 * buffers of 16 KiB. A socket keeps some 250 bytes of memory for each write that waits: a peer that sends pings and
 * never reads would otherwise cost a hundred times what its pongs have bytes.
 */
import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { headerSize, maxHeaderBytes, writeHeader } from './frame.ts'

/** Payloads up to here are copied behind their header; the copy costs less than a second write. */
const maxShortBytes = 4096
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
  /** Writes of this outbox that the operating system has not taken yet. */
  #pending = 0
  #scheduled = false

  /** @param onWritten called whenever the operating system has taken something */
  constructor(socket: Socket, onWritten: () => void) {
    this.#socket = socket
    this.#onWritten = onWritten
  }

  /** Bytes that the operating system has not taken. */
  get bytes(): number {
    return this.#socket.writableLength + this.#length
  }

  /** Whether the operating system takes nothing at the moment. */
  get blocked(): boolean {
    return this.#socket.writableLength > 0
  }

  /** Sends a frame. A long payload that is no string must not be changed before it has left. */
  add(opcode: number, payload: string | Buffer): void {
    const length = typeof payload === 'string' ? Buffer.byteLength(payload) : payload.length
    if (length > maxShortBytes) return this.#addLong(opcode, payload, length)
    const target = this.#reserve(headerSize(length) + length)
    const start = writeHeader(target, this.#length, opcode, length)
    if (typeof payload === 'string') target.write(payload, start)
    else target.set(payload, start)
    this.#length = start + length
    if (this.#scheduled) return
    this.#scheduled = true
    process.nextTick(endTurn, this)
  }

  /** Hands everything to the socket and says that nothing more follows. */
  end(): void {
    this.#handOver()
    this.#socket.end()
  }

  /** Sends what was gathered in this turn, unless an earlier write waits: what comes after that one follows it. */
  endTurn(): void {
    this.#scheduled = false
    this.#flush()
  }

  /** Behind a write of others, the 101, nothing would come back for what is gathered: it follows it at once. */
  #flush(): void {
    if (!this.blocked || this.#pending === 0) this.#handOver()
  }

  #handOver(): void {
    if (this.#gathered === undefined) return
    const gathered = this.#gathered.subarray(0, this.#length)
    this.#gathered = undefined
    this.#length = 0
    this.#pending += 1
    this.#socket.write(gathered, this.#written)
  }

  #addLong(opcode: number, payload: string | Buffer, length: number): void {
    this.#handOver()
    this.#pending += 1
    if (typeof payload === 'string') {
      const frame = Buffer.allocUnsafe(maxHeaderBytes + length)
      const start = writeHeader(frame, 0, opcode, length)
      frame.write(payload, start)
      return void this.#socket.write(frame.subarray(0, start + length), this.#written)
    }
    const header = Buffer.allocUnsafe(headerSize(length))
    writeHeader(header, 0, opcode, length)
    this.#socket.cork()
    this.#socket.write(header)
    this.#socket.write(payload, this.#written)
    this.#socket.uncork()
  }

  /** Makes room for `count` more bytes behind what is gathered. */
  #reserve(count: number): Buffer {
    if (this.#length + count > maxGatheredBytes) this.#handOver()
    const needed = this.#length + count
    if (this.#gathered !== undefined && needed <= this.#gathered.length) return this.#gathered
    const doubled = this.#gathered === undefined ? firstGatheredBytes : this.#gathered.length * 2
    const grown = Buffer.allocUnsafe(Math.max(needed, doubled))
    this.#gathered?.copy(grown, 0, 0, this.#length)
    this.#gathered = grown
    return grown
  }
}

function endTurn(outbox: Outbox): void {
  outbox.endTurn()
}
