/**
 * The values of commands and replies: their types, reading a reply as its expected type, and encoding text that UTF-8
 * cannot represent.
 */
import { RedisProtocolError, RedisReplyError } from './errors.ts'

/** An argument of a command: text is sent as UTF-8, a finite number in decimal. */
export type Argument = string | number

/** A command: its name and its arguments. */
export type Command = readonly [name: string, ...rest: readonly Argument[]]

/**
 * A reply of the server. A Buffer is a bulk string, which may hold any bytes; a string is a status such as `OK`; null
 * is a missing string or list. An error inside a list, which a script can return, is a value.
 */
export type Reply = null | number | string | Buffer | RedisReplyError | readonly Reply[]

/** Reads a status, or a bulk string as UTF-8. Throws RedisProtocolError for any other reply. */
export function textIn(reply: Reply | undefined): string {
  if (typeof reply === 'string') return reply
  if (Buffer.isBuffer(reply)) return reply.toString()
  throw unexpected('a string', reply)
}

/**
 * Reads an integer, or a bulk string that holds one: scripts return large numbers as text. Throws RedisProtocolError
 * for any other reply.
 */
export function integerIn(reply: Reply | undefined): number {
  if (typeof reply === 'number') return reply
  const text = Buffer.isBuffer(reply) ? reply.toString('latin1') : ''
  const value = Number(text)
  if (/^-?\d+$/.test(text) && Number.isSafeInteger(value)) return value
  throw unexpected('an integer', reply)
}

/** Reads the items of a list. Throws RedisProtocolError for any other reply. */
export function listIn(reply: Reply | undefined): readonly Reply[] {
  if (isList(reply)) return reply
  throw unexpected('a list', reply)
}

/** Whether a reply is a list. */
export function isList(reply: Reply | undefined): reply is readonly Reply[] {
  return Array.isArray(reply)
}

function unexpected(expected: string, reply: Reply | undefined): Error {
  if (reply instanceof RedisReplyError) return reply
  return new RedisProtocolError(`Redis answered ${kindOf(reply)} instead of ${expected}`)
}

/** Names the type of a reply without its content, which may be secret. */
function kindOf(reply: Reply | undefined): string {
  if (reply === undefined) return 'too few items'
  if (reply === null) return 'null'
  if (typeof reply === 'number') return 'an integer'
  if (typeof reply === 'string') return `the status ${JSON.stringify(reply.slice(0, 40))}`
  return isList(reply) ? `a list of ${reply.length}` : 'a bulk string'
}

/**
 * Marks text that is sent as JSON: text with a lone surrogate, which UTF-8 cannot represent, or that begins with this.
 */
const escaped = '\uffff'

/** Encodes any string so that UTF-8 preserves it. Different strings have different encodings. */
export function encoded(text: string): string {
  return text.startsWith(escaped) || /\p{Surrogate}/u.test(text) ? escaped + JSON.stringify(text) : text
}

/** Reverses {@link encoded}; undefined for text that it cannot have produced. */
export function decoded(text: string): string | undefined {
  if (!text.startsWith(escaped)) return text
  try {
    const value: unknown = JSON.parse(text.slice(escaped.length))
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}
