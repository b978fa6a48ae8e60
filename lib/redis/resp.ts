/**
 * RESP2, the second version of the Redis protocol (https://redis.io/docs/latest/develop/reference/protocol-spec/):
 * parses replies from chunks of any size, and writes commands.
 *
 * Surprise: a bulk string within one chunk is not copied, so it keeps the whole chunk in memory as long as it lives.
 */
import { RedisProtocolError, RedisReplyError } from './errors.ts'
import type { Command, Reply } from './reply.ts'

/** A list that is being read. */
interface OpenList {
  readonly items: Reply[]
  /** How many items are still missing; from 1. */
  missing: number
}

/** The most bytes of one reply, framing included. */
const maxBytes = 64 * 2 ** 20
/** How deep lists may be nested. */
const maxDepth = 16
/** The longest incomplete line that is kept; a complete one may be longer. */
const maxLineBytes = 65_536
const noBytes = Buffer.alloc(0)
const [lineFeed, carriageReturn] = [10, 13]
const [minus, plus, colon, dollar, asterisk] = [0x2d, 0x2b, 0x3a, 0x24, 0x2a]

/** Parses the replies of one connection. */
export class ReplyParser {
  readonly #onReply: (reply: Reply) => void
  /** The incomplete lists, the outermost first. */
  readonly #open: OpenList[] = []
  /** The beginning of an incomplete line. */
  #line: Buffer = noBytes
  /** An incomplete bulk string with its line end, and how many bytes of it are there. */
  #bulk: Buffer | undefined = undefined
  #filled = 0
  /** Bytes of the current reply so far. */
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
    let at = 0
    while (at < chunk.length) {
      at = this.#bulk === undefined ? this.#readLine(chunk, at) : this.#fillBulk(this.#bulk, chunk, at)
    }
  }

  /** Returns where to continue, as the next functions do. */
  #readLine(chunk: Buffer, from: number): number {
    const end = chunk.indexOf(lineFeed, from)
    const next = end < 0 ? chunk.length : end + 1
    this.#count(next - from)
    const piece = chunk.subarray(from, next)
    const line = this.#line.length === 0 ? piece : Buffer.concat([this.#line, piece])
    if (end < 0) {
      if (line.length > maxLineBytes) throw malformed('a line without an end', line)
      this.#line = line
      return next
    }
    this.#line = noBytes
    if (line.length < 3 || line[line.length - 2] !== carriageReturn) {
      throw malformed('a line that does not end in CR LF', line)
    }
    return this.#takeLine(line, chunk, next)
  }

  #takeLine(line: Buffer, chunk: Buffer, next: number): number {
    const kind = line[0]
    if (kind === dollar) return this.#beginBulk(lengthIn(line), chunk, next)
    if (kind === asterisk) this.#beginList(lengthIn(line))
    else if (kind === colon) this.#take(integerOf(line))
    else if (kind === plus) this.#take(line.toString('utf8', 1, line.length - 2))
    else if (kind === minus) this.#take(new RedisReplyError(line.toString('utf8', 1, line.length - 2)))
    else throw malformed('no reply', line)
    return next
  }

  #beginBulk(length: number, chunk: Buffer, from: number): number {
    if (length < 0) {
      this.#take(null)
      return from
    }
    this.#count(length + 2)
    const end = from + length
    if (end + 2 > chunk.length) {
      this.#bulk = Buffer.allocUnsafe(length + 2)
      this.#filled = 0
      return from
    }
    checkEnd(chunk, end)
    this.#take(chunk.subarray(from, end))
    return end + 2
  }

  #fillBulk(bulk: Buffer, chunk: Buffer, from: number): number {
    const copied = chunk.copy(bulk, this.#filled, from)
    this.#filled += copied
    if (this.#filled === bulk.length) {
      checkEnd(bulk, bulk.length - 2)
      this.#bulk = undefined
      this.#take(bulk.subarray(0, bulk.length - 2))
    }
    return from + copied
  }

  #beginList(length: number): void {
    if (length < 0) return this.#take(null)
    if (length === 0) return this.#take([])
    if (this.#open.length > maxDepth) throw new RedisProtocolError('Redis sent lists nested too deeply')
    this.#open.push({ items: [], missing: length })
  }

  /** Adds a value to the innermost list, and each list that becomes complete to the list around it. */
  #take(value: Reply): void {
    let whole = value
    for (let list = this.#open.at(-1); list !== undefined; list = this.#open.at(-1)) {
      list.items.push(whole)
      list.missing -= 1
      if (list.missing > 0) return
      this.#open.pop()
      whole = list.items
    }
    this.#bytes = 0
    this.#onReply(whole)
  }

  #count(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes <= maxBytes) return
    throw new RedisProtocolError(`Redis sent a reply of more than ${maxBytes} bytes`)
  }
}

/** Reads a length from 0; -1 stands for null. */
function lengthIn(line: Buffer): number {
  const length = integerOf(line)
  if (length < -1) throw malformed('a wrong length', line)
  return length
}

/** Reads the integer behind the first character. Rejects integers that a number cannot hold exactly. */
function integerOf(line: Buffer): number {
  const text = line.toString('latin1', 1, line.length - 2)
  const value = Number(text)
  if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(value)) return value
  throw malformed('a wrong integer', line)
}

function checkEnd(bytes: Buffer, at: number): void {
  if (bytes[at] === carriageReturn && bytes[at + 1] === lineFeed) return
  throw new RedisProtocolError('Redis sent a bulk string of another length than it said')
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
