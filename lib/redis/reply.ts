/**
 * What goes into a command and what comes back, and how to take a reply for what it must be.
 */
import { RedisProtocolError, RedisReplyError } from './errors.ts'

/** What a command takes: a text is sent as UTF-8, a number as its decimal text, bytes as they are. */
export type Argument = string | number | Uint8Array

/** A command: its name, then what it takes. */
export type Command = readonly [name: string, ...rest: readonly Argument[]]

/**
 * What the server answers. A Buffer is a bulk string, which may hold any bytes; a string is a status, such as `OK`; null
 * stands for a string or a list that is not there. An error is a value where it stands in a list, which a script made.
 */
export type Reply = null | number | string | Buffer | RedisReplyError | readonly Reply[]

/** The text of a status or, as UTF-8, of a bulk string. Throws RedisProtocolError for anything else. */
export function textIn(reply: Reply | undefined): string {
  if (typeof reply === 'string') return reply
  if (Buffer.isBuffer(reply)) return reply.toString()
  throw unexpected('a text', reply)
}

/**
 * The integer of a reply, or of a bulk string that holds one as a script passes large numbers on.
 * Throws RedisProtocolError for anything else.
 */
export function integerIn(reply: Reply | undefined): number {
  if (typeof reply === 'number') return reply
  const text = Buffer.isBuffer(reply) ? reply.toString('latin1') : ''
  const value = Number(text)
  if (/^-?\d+$/.test(text) && Number.isSafeInteger(value)) return value
  throw unexpected('an integer', reply)
}

/** The items of a list. Throws RedisProtocolError for anything else. */
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
  return new RedisProtocolError(`Redis answered ${kindOf(reply)} in place of ${expected}`)
}

/** What it is, without what it holds: that may be a secret. */
function kindOf(reply: Reply | undefined): string {
  if (reply === undefined) return 'too few items'
  if (reply === null) return 'null'
  if (typeof reply === 'number') return 'an integer'
  if (typeof reply === 'string') return `the status ${JSON.stringify(reply.slice(0, 40))}`
  return isList(reply) ? `a list of ${reply.length}` : 'a bulk string'
}
