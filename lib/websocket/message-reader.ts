/**
 * Takes what a client sends apart into messages and control frames, whatever pieces it arrives in.
 *
 * A message that lies whole in one piece is unmasked where it lies. Any other is collected in a buffer that grows with
 * what has arrived, not with what was announced, and never past the limit.
 *
 * Surprise: the caller pulls. `next()` gives one message or control frame at a time, so that a connection that is
 * closed by what it just got needs no flag in here: nobody asks any more.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { closeCodes, ProtocolError } from './close-code.ts'
import { firstControlOpcode, FrameHeader, opcodes, readHeader } from './frame.ts'
import { applyMask, rotateMask } from './mask.ts'
import { checkUtf8 } from './utf8.ts'

/** A Close, Ping or Pong frame. */
export class ControlFrame {
  readonly opcode: number
  /** Unmasked, at most 125 bytes; a part of what arrived. */
  readonly payload: Buffer

  constructor(opcode: number, payload: Buffer) {
    this.opcode = opcode
    this.payload = payload
  }
}

const empty: Buffer = Buffer.alloc(0)

/** Reads one connection. */
export class MessageReader {
  readonly #maxMessageBytes: number
  readonly #header = new FrameHeader()
  /** What has arrived and is read from `#at` on. */
  #chunk = empty
  #at = 0
  /** The opcode of the message that is being read; 0 between messages. */
  #opcode = 0
  /** Whether a data frame's payload is being read, and how many bytes of it are still to come. */
  #inPayload = false
  #remaining = 0
  /** The mask for the next byte of the payload. */
  #key = 0
  /** The message so far, its length, and up to where it was checked to be UTF-8. */
  #message = empty
  #length = 0
  #checked = 0

  /** @param maxMessageBytes the most bytes of a message, over all its fragments */
  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Bytes of memory held for what is not complete. */
  get heldBytes(): number {
    return this.#chunk.length + this.#message.length
  }

  /** Takes the next piece, which may be changed in here. To be called when `next()` has nothing more to give. */
  push(chunk: Buffer): void {
    this.#chunk = this.#chunk.length === 0 ? chunk : Buffer.concat([this.#chunk, chunk])
  }

  /**
   * The next text message as a string, the next binary one as a Buffer that is the caller's, or the next control frame;
   * undefined when the rest of it has not arrived.
   * @throws ProtocolError; there is nothing more to read then
   */
  next(): string | Buffer | ControlFrame | undefined {
    for (;;) {
      if (this.#inPayload) {
        const taken = this.#collect()
        if (!taken) return this.#wait()
        if (this.#header.final) return this.#takeMessage()
      }
      if (!readHeader(this.#chunk, this.#at, this.#header)) return this.#wait()
      if (this.#header.opcode >= firstControlOpcode) return this.#takeControl() ?? this.#wait()
      this.#begin()
      if (this.#isWhole()) return this.#takeWhole()
    }
  }

  /** Forgets what was read so far. */
  clear(): void {
    this.#chunk = empty
    this.#at = 0
    this.#message = empty
    this.#length = 0
  }

  /** Keeps what was not read, without the piece that it arrived in. */
  #wait(): undefined {
    if (this.#at === 0) return
    this.#chunk = this.#at === this.#chunk.length ? empty : Buffer.from(this.#chunk.subarray(this.#at))
    this.#at = 0
  }

  /** A control frame is at most 131 bytes long and is waited for. */
  #takeControl(): ControlFrame | undefined {
    const { opcode, length, key, size } = this.#header
    const start = this.#at + size
    const end = start + length
    if (end > this.#chunk.length) return undefined
    applyMask(this.#chunk, start, end, key)
    this.#at = end
    return new ControlFrame(opcode, this.#chunk.subarray(start, end))
  }

  /** Begins a data frame's payload: continuation and size are decided here (RFC 6455, sections 5.4 and 7.4.1). */
  #begin(): void {
    const { opcode, length, key, size } = this.#header
    if (opcode === opcodes.continuation) {
      if (this.#opcode === 0) throw new ProtocolError(closeCodes.protocolError, 'There is no message to continue')
    } else {
      if (this.#opcode !== 0) throw new ProtocolError(closeCodes.protocolError, 'The message before is not complete')
      this.#opcode = opcode
    }
    if (this.#length + length > this.#maxMessageBytes) {
      throw new ProtocolError(closeCodes.tooLarge, `A message has at most ${this.#maxMessageBytes} bytes`)
    }
    this.#inPayload = true
    this.#remaining = length
    this.#key = key
    this.#at += size
  }

  /** Whether the message is one frame that has arrived whole. */
  #isWhole(): boolean {
    const { final, opcode, length } = this.#header
    return final && opcode !== opcodes.continuation && length <= this.#chunk.length - this.#at
  }

  #takeWhole(): string | Buffer {
    const start = this.#at
    const end = start + this.#remaining
    const isText = this.#opcode === opcodes.text
    applyMask(this.#chunk, start, end, this.#key)
    this.#at = end
    this.#inPayload = false
    this.#opcode = 0
    const payload = this.#chunk.subarray(start, end)
    if (isText) {
      if (!isUtf8(payload)) throw notUtf8()
      return payload.toString()
    }
    // A short message that is kept would keep all that arrived with it.
    return payload.length * 2 < this.#chunk.length ? Buffer.from(payload) : payload
  }

  /** Adds what has arrived of the payload to the message. Returns whether the frame is complete. */
  #collect(): boolean {
    const count = Math.min(this.#remaining, this.#chunk.length - this.#at)
    const start = this.#length
    this.#reserve(start + count)
    this.#chunk.copy(this.#message, start, this.#at, this.#at + count)
    this.#at += count
    this.#length += count
    this.#remaining -= count
    applyMask(this.#message, start, this.#length, this.#key)
    this.#key = rotateMask(this.#key, count)
    if (this.#opcode === opcodes.text) {
      this.#checked = checkUtf8(this.#message, this.#checked, this.#length)
      if (this.#checked < 0) throw notUtf8()
    }
    this.#inPayload = this.#remaining > 0
    return !this.#inPayload
  }

  /** Twice what is needed, so that a message in many pieces is copied a few times only, but no more than may come. */
  #reserve(needed: number): void {
    if (needed <= this.#message.length) return
    const most = this.#header.final ? this.#length + this.#remaining : this.#maxMessageBytes
    const grown = Buffer.allocUnsafe(Math.min(needed * 2, most))
    this.#message.copy(grown, 0, 0, this.#length)
    this.#message = grown
  }

  #takeMessage(): string | Buffer {
    const message = this.#message.subarray(0, this.#length)
    const isText = this.#opcode === opcodes.text
    if (isText && this.#checked < this.#length) throw notUtf8()
    this.#opcode = 0
    this.#message = empty
    this.#length = 0
    this.#checked = 0
    return isText ? message.toString() : message
  }
}

function notUtf8(): ProtocolError {
  return new ProtocolError(closeCodes.invalidData, 'The text is not UTF-8')
}
