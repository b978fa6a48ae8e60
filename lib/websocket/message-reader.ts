/**
 * Splits the bytes of a client into messages and control frames, whatever chunks they arrive in.
 *
 * A message that is complete in one chunk is unmasked in place. Any other is collected in a buffer that grows with the
 * bytes that have arrived, not with the announced length, and never beyond the limit.
 *
 * The caller pulls one message or control frame at a time with `next()`. When a message makes it close the connection,
 * it stops calling `next()`; the reader needs no flag for that.
 */
import { Buffer, isUtf8 } from 'node:buffer'
import { closeCodes, ProtocolError } from './close-code.ts'
import { applyMask, firstControlOpcode, FrameHeader, opcodes, readHeader, rotateMask } from './frame.ts'

/** A Close, Ping or Pong frame. */
export class ControlFrame {
  readonly opcode: number
  /** Unmasked, at most 125 bytes; a part of the chunk that arrived. */
  readonly payload: Buffer

  constructor(opcode: number, payload: Buffer) {
    this.opcode = opcode
    this.payload = payload
  }
}

const empty: Buffer = Buffer.alloc(0)

/** The reader of one connection. */
export class MessageReader {
  readonly #maxMessageBytes: number
  readonly #header = new FrameHeader()
  /** The bytes that have arrived; the next one to read is at `#at`. */
  #chunk = empty
  #at = 0
  /** The opcode of the current message; 0 between messages. */
  #opcode = 0
  /** Whether the payload of a data frame is being read, and the number of its bytes that are still missing. */
  #inPayload = false
  #remaining = 0
  /** The mask for the next byte of the payload. */
  #key = 0
  /** The collected part of the message, its length, and the end of the part that was checked to be UTF-8. */
  #message = empty
  #length = 0
  #checked = 0

  /** @param maxMessageBytes the most bytes of a message, over all its fragments */
  constructor(maxMessageBytes: number) {
    this.#maxMessageBytes = maxMessageBytes
  }

  /** Bytes of memory held for an incomplete message or frame. */
  get heldBytes(): number {
    return this.#chunk.length + this.#message.length
  }

  /** Adds a chunk, which the reader may change. Call it after `next()` has returned undefined. */
  push(chunk: Buffer): void {
    this.#chunk = this.#chunk.length === 0 ? chunk : Buffer.concat([this.#chunk, chunk])
  }

  /**
   * Returns the next text message as a string, binary message as a Buffer that the caller may keep, or control frame;
   * undefined when it has not arrived completely.
   * @throws ProtocolError; do not call the reader again then
   */
  next(): string | Buffer | ControlFrame | undefined {
    for (;;) {
      if (this.#inPayload) {
        if (!this.#collect()) return this.#wait()
        if (this.#header.final) return this.#takeMessage()
      }
      if (!readHeader(this.#chunk, this.#at, this.#header)) return this.#wait()
      if (this.#header.opcode >= firstControlOpcode) return this.#takeControl() ?? this.#wait()
      this.#begin()
      if (this.#isWhole()) return this.#takeWhole()
    }
  }

  /** Frees the memory of an incomplete message. */
  clear(): void {
    this.#chunk = empty
    this.#at = 0
    this.#message = empty
    this.#length = 0
  }

  /** Copies the bytes that are not read yet, so that their chunk can be freed. */
  #wait(): undefined {
    if (this.#at === 0) return
    this.#chunk = this.#at === this.#chunk.length ? empty : Buffer.from(this.#chunk.subarray(this.#at))
    this.#at = 0
  }

  /** Returns undefined while the frame is not complete; it has at most 131 bytes. */
  #takeControl(): ControlFrame | undefined {
    const { opcode, length, key, size } = this.#header
    const start = this.#at + size
    const end = start + length
    if (end > this.#chunk.length) return undefined
    applyMask(this.#chunk, start, end, key)
    this.#at = end
    return new ControlFrame(opcode, this.#chunk.subarray(start, end))
  }

  /** Starts the payload of a data frame: checks continuation and size (RFC 6455, sections 5.4 and 7.4.1). */
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

  /** Whether the message is one frame that has arrived completely. */
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
    // A short message would keep the whole chunk in memory as long as the application keeps the message.
    return payload.length * 2 < this.#chunk.length ? Buffer.from(payload) : payload
  }

  /** Appends the part of the payload that has arrived to the message. Returns whether the frame is complete. */
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

  /** Grows the buffer to twice the needed size, so that it is rarely copied, but not beyond the possible length. */
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

/**
 * Checks UTF-8 that arrives in chunks (RFC 6455, section 8.1; RFC 3629): `bytes` from `from`, where a character begins,
 * up to `to`. It fails at the first wrong byte, not at the end of the message.
 * @returns the index to continue at when more bytes are there: the start of an incomplete last character, or `to`; -1
 *   when the bytes are not UTF-8, whatever follows
 */
export function checkUtf8(bytes: Buffer, from: number, to: number): number {
  const end = startOfIncomplete(bytes, from, to)
  return isUtf8(bytes.subarray(from, end)) && isPrefix(bytes, end, to) ? end : -1
}

/** Returns the start of an incomplete last character; `to` when the last one is complete. */
function startOfIncomplete(bytes: Buffer, from: number, to: number): number {
  for (let at = to - 1; at >= from && at >= to - 3; at -= 1) {
    const byte = bytes[at] as number
    if (byte < 0x80) return to
    if (byte >= 0xc0) return at + lengthBy(byte) > to ? at : to
  }
  return to
}

/** Returns the length of a character by its first byte; 1 for bytes that cannot be first, which `isUtf8` refuses. */
function lengthBy(lead: number): number {
  if (lead < 0xe0) return lead < 0xc2 ? 1 : 2
  if (lead < 0xf0) return 3
  return lead < 0xf5 ? 4 : 1
}

/** Whether up to three bytes can begin a character. The second byte decides; `startOfIncomplete` saw the first. */
function isPrefix(bytes: Buffer, at: number, to: number): boolean {
  if (to - at < 2) return true
  const lead = bytes[at] as number
  const second = bytes[at + 1] as number
  const least = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
  const most = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
  return second >= least && second <= most
}
