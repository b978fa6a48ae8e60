/**
 * Splits the bytes of a client into messages and control frames, whatever chunks they arrive in.
 *
 * A frame is read when it is complete, and unmasked in place. The bytes of an incomplete frame, and the fragments of an
 * incomplete message, are collected in buffers that grow with the bytes that have arrived, not with the announced
 * length. A message that is too large is refused at a frame header, one that is not UTF-8 only when it is complete.
 *
 * The caller pulls one message or control frame at a time with `next()`. When a message makes the caller close the
 * connection, it stops calling `next()`, so the reader needs no flag for that.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { closeCodes, ProtocolError } from './close-code.ts'
import { applyMask, firstControlOpcode, FrameHeader, opcodes, readHeader } from './frame.ts'

/** A Close, Ping or Pong frame. */
export class ControlFrame {
  readonly opcode: number
  /** Unmasked, at most 125 bytes; a view of the received chunk. */
  readonly payload: Buffer

  constructor(opcode: number, payload: Buffer) {
    this.opcode = opcode
    this.payload = payload
  }
}

const empty: Buffer = Buffer.alloc(0)

/** Bytes that arrive in pieces. */
class Collected {
  length = 0
  #bytes = empty

  get capacity(): number {
    return this.#bytes.length
  }

  /** Copies a piece. @param max the expected final length: no more is allocated */
  add(piece: Buffer, max: number): void {
    const length = this.length + piece.length
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(Math.min(length * 2, max), length))
      this.#bytes.copy(grown, 0, 0, this.length)
      this.#bytes = grown
    }
    piece.copy(this.#bytes, this.length)
    this.length = length
  }

  /** Returns the bytes and clears them. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.length)
    this.#bytes = empty
    this.length = 0
    return taken
  }
}

/** The reader of one connection. */
export class MessageReader {
  readonly #maxMessageBytes: number
  readonly #header = new FrameHeader()
  /** The bytes to read; the next frame begins at `#at`. */
  #chunk = empty
  #at = 0
  /** The bytes of an incomplete frame, and the number of bytes needed to continue. */
  readonly #unfinished = new Collected()
  #needed = 0
  /** The opcode (0 between messages) and the received fragments of an incomplete message. */
  #opcode = 0
  readonly #fragments = new Collected()

  /** @param maxMessageBytes the maximum bytes of a message, over all its fragments */
  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Bytes of memory held for an incomplete message or frame. */
  get heldBytes(): number {
    return this.#chunk.length + this.#unfinished.capacity + this.#fragments.capacity
  }

  /** Adds a chunk, which the reader may change. Call it after `next()` has returned undefined. */
  push(chunk: Buffer): void {
    if (this.#unfinished.length === 0) {
      this.#chunk = chunk
      return
    }
    this.#unfinished.add(chunk, this.#needed)
    if (this.#unfinished.length >= this.#needed) this.#chunk = this.#unfinished.take()
  }

  /**
   * Returns the next text message as a string, binary message as a Buffer that the caller may keep, or control frame;
   * undefined when it has not arrived completely.
   * @throws ProtocolError; do not use the reader afterwards
   */
  next(): string | Buffer | ControlFrame | undefined {
    while (this.#at < this.#chunk.length) {
      const left = this.#chunk.length - this.#at
      if (!readHeader(this.#chunk, this.#at, this.#header)) return this.#wait(left + 1)
      const { opcode, final, length, key, size } = this.#header
      const isControl = opcode >= firstControlOpcode
      if (!isControl) this.#check(opcode, length)
      if (size + length > left) return this.#wait(size + length)
      const start = this.#at + size
      this.#at = start + length
      applyMask(this.#chunk, start, this.#at, key)
      const payload = this.#chunk.subarray(start, this.#at)
      if (isControl) return new ControlFrame(opcode, payload)
      if (opcode !== opcodes.continuation) this.#opcode = opcode
      if (final && opcode !== opcodes.continuation) return this.#messageOf(payload)
      this.#fragments.add(payload, this.#maxMessageBytes)
      if (final) return this.#messageOf(this.#fragments.take())
    }
    this.#chunk = empty
    this.#at = 0
    return undefined
  }

  /** Frees the memory of an incomplete message. */
  clear(): void {
    this.#chunk = empty
    this.#at = 0
    this.#unfinished.take()
    this.#fragments.take()
  }

  /** Copies the beginning of a frame, so that its chunk can be freed, and waits for this many bytes of it. */
  #wait(needed: number): undefined {
    this.#unfinished.add(this.#chunk.subarray(this.#at), needed)
    this.#needed = needed
    this.#chunk = empty
    this.#at = 0
  }

  /** Checks continuation and size of a data frame (RFC 6455, sections 5.4 and 7.4.1). */
  #check(opcode: number, length: number): void {
    if (opcode === opcodes.continuation) {
      if (this.#opcode === 0) throw new ProtocolError(closeCodes.protocolError, 'There is no message to continue')
    } else if (this.#opcode !== 0) {
      throw new ProtocolError(closeCodes.protocolError, 'The previous message is not complete')
    }
    if (this.#fragments.length + length > this.#maxMessageBytes) {
      throw new ProtocolError(closeCodes.tooLarge, `A message has at most ${this.#maxMessageBytes} bytes`)
    }
  }

  #messageOf(payload: Buffer): string | Buffer {
    const isText = this.#opcode === opcodes.text
    this.#opcode = 0
    // A short message would keep the whole chunk in memory as long as the application keeps the message.
    if (!isText) return payload.length * 2 < this.#chunk.length ? Buffer.from(payload) : payload
    if (!isUtf8(payload)) throw new ProtocolError(closeCodes.invalidData, 'The text is not UTF-8')
    return payload.toString()
  }
}
