/**
 * What can go wrong with a Redis server, told apart by what its caller can do about it: nothing was sent, nobody knows
 * whether it was done, the server refused.
 *
 * Surprise: a server's own message may quote the arguments of the command that it does not know, passwords among them.
 * That part is cut off.
 */

/** There is no connection that can be used, so nothing was sent. The message and `cause` say why. */
export class RedisAwayError extends Error {
  override readonly name: string = 'RedisAwayError'

  constructor(message: string, cause?: unknown) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0 // While a server is away this is made for every request, and says where it was made to none.
    super(message, cause === undefined ? undefined : { cause })
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** The command was sent, and the connection ended before its answer: it was done or it was not. It is not sent again. */
export class RedisUnknownOutcomeError extends RedisAwayError {
  override readonly name = 'RedisUnknownOutcomeError'
}

/** The server holds, under the same name, what servers with another key share. */
export class RedisForeignError extends Error {
  override readonly name = 'RedisForeignError'
}

/** What came is not the protocol, or not the kind of reply that the command gives. */
export class RedisProtocolError extends Error {
  override readonly name = 'RedisProtocolError'
}

/** The server answered with an error. */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError'
  /** The first word of the server's text, such as `WRONGTYPE`. */
  readonly code: string

  /** @param text what the server sent behind the `-`; the message is that, with advice where there is some */
  constructor(text: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0 // It would name the parser, whatever the command was.
    const said = text.replace(/,? with args beginning with: .*$/s, '')
    const code = /^[A-Z]+/.exec(said)?.[0] ?? 'ERR'
    const advice = adviceOf.get(code)
    super(advice === undefined ? said : `${said} (${advice})`)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
  }
}

/** What the codes of Redis and Valkey mean for whoever runs the server. */
const adviceOf: ReadonlyMap<string, string> = new Map([
  ['BUSY', 'a script runs for too long there: see SLOWLOG, or end it with SCRIPT KILL'],
  ['CLUSTERDOWN', 'it is a node of a cluster that is not whole; a single server is needed'],
  ['CROSSSLOT', 'it is a node of a cluster; a single server is needed'],
  ['LOADING', 'it has been started and reads its data; it answers when that is done'],
  ['MASTERDOWN', 'it is a replica that has lost its master; name the master'],
  ['MISCONF', 'it cannot write its data to disk, and takes no changes until it can'],
  ['MOVED', 'it is a node of a cluster; a single server is needed'],
  ['NOAUTH', 'it wants a password'],
  ['NOPERM', 'the rules of this user (ACL) do not allow it'],
  ['NOREPLICAS', 'it has fewer replicas than min-replicas-to-write, and takes no changes until it has them'],
  ['OOM', 'its memory is full, as maxmemory says: give it more, or let it hold less'],
  ['READONLY', 'it is a replica; name the master'],
  ['TRYAGAIN', 'it is a node of a cluster that is being rebuilt'],
  ['WRONGPASS', 'user and password are not those of the server'],
])

const temporaryCodes: ReadonlySet<string> = new Set([
  'BUSY',
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'NOREPLICAS',
  'OOM',
  'READONLY',
  'TRYAGAIN',
])

/**
 * Whether the server cannot do it now and may be able to in a while: it is away, or it said so. What is left is a
 * mistake in the command or in the rights of the user.
 */
export function isTemporary(error: unknown): boolean {
  return error instanceof RedisAwayError || (error instanceof RedisReplyError && temporaryCodes.has(error.code))
}
