/**
 * RESP2, the second version of the Redis protocol (https://redis.io/docs/latest/develop/reference/protocol-spec/):
 * parses replies from chunks of any size, and writes commands.
 *
 * Surprise: a bulk string is not copied: while it is in use, it keeps the whole input chunk in memory.
 */
import { RedisProtocolError, RedisReplyError } from './errors.ts'
import type { Command, Reply } from './reply.ts'

/** A list that is being read. */
interface OpenList {
  readonly items: Reply[]
  /** The number of missing items, from 1. */
  missing: number
}

/** The maximum bytes of one reply, including framing. */
const maxBytes = 64 * 2 ** 20
/** The maximum length of an incomplete line; a complete one may be longer. */
const maxLineBytes = 65_536
const [lineFeed, carriageReturn] = [10, 13]
const [minus, plus, colon, dollar, asterisk] = [0x2d, 0x2b, 0x3a, 0x24, 0x2a]

/** Parses the replies of one connection. */
export class ReplyParser {
  readonly #onReply: (reply: Reply) => void
  /** The incomplete lists, the outermost first. */
  readonly #open: OpenList[] = []
  /** An incomplete line or bulk string in pieces, and their total length. */
  #pieces: Buffer[] = []
  #held = 0
  /** The length at which an incomplete bulk string is complete. */
  #wanted = 0
  /** Bytes of the current reply that have been read. */
  #bytes = 0

  /** @param onReply called with each reply, in order, while {@link read} runs */
  constructor(onReply: (reply: Reply) => void) {
    this.#onReply = onReply
  }

  /**
   * Reads the next bytes.
   * @throws RedisProtocolError for bytes that are not RESP or exceed the limits; the parser cannot be used afterwards
   */
  read(chunk: Buffer): void {
    this.#pieces.push(chunk)
    this.#held += chunk.length
    if (this.#held < this.#wanted) return
    // An unfinished line has no line feed yet. Searching all of it again with each chunk would take quadratic time.
    if (this.#wanted === 0 && this.#held <= maxLineBytes && !chunk.includes(lineFeed)) return
    this.#wanted = 0
    const bytes = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces)
    let at = 0
    for (let end = this.#readNext(bytes, 0); end > at; end = this.#readNext(bytes, at)) at = end
    this.#held = bytes.length - at
    this.#pieces = this.#held === 0 ? [] : [bytes.subarray(at)]
  }

  /** Reads a line and the bulk string that follows. Returns where they end; `from` when they are incomplete. */
  #readNext(bytes: Buffer, from: number): number {
    const next = bytes.indexOf(lineFeed, from) + 1
    if (next === 0) {
      if (bytes.length - from <= maxLineBytes) return from
      throw malformed('a line without an end', bytes.subarray(from))
    }
    const line = bytes.subarray(from, next)
    if (line.length < 3 || line[line.length - 2] !== carriageReturn) {
      throw malformed('a line that does not end in CR LF', line)
    }
    const kind = line[0]
    const length = kind === dollar || kind === asterisk ? lengthIn(line) : 0
    const end = kind === dollar && length >= 0 ? next + length + 2 : next
    if (this.#bytes + end - from > maxBytes) {
      throw new RedisProtocolError(`Redis sent a reply of more than ${maxBytes} bytes`)
    }
    if (end > bytes.length) {
      this.#wanted = end - from
      return from
    }
    this.#bytes += end - from
    if (length < 0) this.#take(null)
    else if (kind === dollar) this.#take(bulkIn(bytes, next, end - 2))
    else if (kind === asterisk) this.#beginList(length)
    else if (kind === colon) this.#take(integerOf(line))
    else if (kind === plus) this.#take(line.toString('utf8', 1, line.length - 2))
    else if (kind === minus) this.#take(new RedisReplyError(line.toString('utf8', 1, line.length - 2)))
    else throw malformed('an invalid reply', line)
    return end
  }

  #beginList(length: number): void {
    if (length === 0) this.#take([])
    else this.#open.push({ items: [], missing: length })
  }

  /** Adds a value to the innermost list, and each list that becomes complete to the list around it. */
  #take(value: Reply): void {
    let complete = value
    for (let list = this.#open.at(-1); list !== undefined; list = this.#open.at(-1)) {
      list.items.push(complete)
      list.missing -= 1
      if (list.missing > 0) return
      this.#open.pop()
      complete = list.items
    }
    this.#bytes = 0
    this.#onReply(complete)
  }
}

/** Reads a length from 0, or -1 for null. */
function lengthIn(line: Buffer): number {
  const length = integerOf(line)
  if (length < -1) throw malformed('an invalid length', line)
  return length
}

/** Reads the integer after the first character. Rejects integers that a number cannot represent exactly. */
function integerOf(line: Buffer): number {
  const text = line.toString('latin1', 1, line.length - 2)
  const value = Number(text)
  if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(value)) return value
  throw malformed('an invalid integer', line)
}

function bulkIn(bytes: Buffer, from: number, end: number): Buffer {
  if (bytes[end] === carriageReturn && bytes[end + 1] === lineFeed) return bytes.subarray(from, end)
  throw new RedisProtocolError('Redis sent a bulk string that differs from its announced length')
}

function malformed(what: string, line: Buffer): RedisProtocolError {
  return new RedisProtocolError(`Redis sent ${what}: ${JSON.stringify(line.toString('latin1', 0, 60))}`)
}

/** Writes a command. */
export function commandText(command: Command): string {
  let text = `*${command.length}\r\n`
  for (const argument of command) {
    const written = String(argument)
    text += `$${Buffer.byteLength(written)}\r\n${written}\r\n`
  }
  return text
}
