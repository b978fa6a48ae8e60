/**
 * The errors of the client, by what the caller can do about them: nothing was sent, the outcome is unknown, or the
 * server refused the command.
 */
import { reasonOf } from '../base/reason.ts'
import { awayError } from '../http/errors.ts'

/** There is no usable connection, so nothing was sent. The message and `cause` give the reason. */
export class RedisAwayError extends Error {
  override readonly name: string = 'RedisAwayError'
}

/**
 * The command was sent, but the connection ended before the answer: it may have run. The client does not resend it.
 */
export class RedisUnknownOutcomeError extends RedisAwayError {
  override readonly name = 'RedisUnknownOutcomeError'
}

/** The server already holds, under the same name, the data of servers with another `app_key`. */
export class RedisForeignError extends Error {
  override readonly name = 'RedisForeignError'
}

/** The bytes received are not RESP, or the reply is not of the type that the command returns. */
export class RedisProtocolError extends Error {
  override readonly name = 'RedisProtocolError'
}

/** The server answered with an error. */
export class RedisReplyError extends Error {
  override readonly name = 'RedisReplyError'
  /** The first word of the server's message, such as `WRONGTYPE`. */
  readonly code: string

  /** @param text the server's message, without the leading `-`; advice is added for known codes */
  constructor(text: string) {
    // The server quotes the arguments of an unknown command, which may include a password.
    const message = text.replace(/,? with args beginning with: .*$/s, '')
    const code = /^[A-Z]+/.exec(message)?.[0] ?? 'ERR'
    const advice = /^ERR max number of clients/.test(message) ? tooMany : (temporary.get(code) ?? lasting.get(code))
    super(advice === undefined ? message : `${message} (${advice})`)
    this.code = code
  }
}

/** Codes of temporary errors, with an explanation for the operator. */
const temporary: ReadonlyMap<string, string> = new Map([
  ['BUSY', 'a script has been running for too long: see SLOWLOG, or end it with SCRIPT KILL'],
  ['CLUSTERDOWN', 'it is a node of a cluster that is not complete; a single server is needed'],
  ['LOADING', 'it is starting and loading its data; it answers when that is done'],
  ['MASTERDOWN', 'it is a replica that has lost its master; name the master'],
  ['MISCONF', 'it cannot write its data to disk, and accepts no changes until it can'],
  ['NOREPLICAS', 'it has fewer replicas than min-replicas-to-write, and accepts no changes until it has them'],
  ['OOM', 'its memory is full (maxmemory): give it more, or store less'],
  ['READONLY', 'it is a replica; name the master'],
  ['TRYAGAIN', 'it is a node of a cluster that is being resharded'],
])

/** The explanation of an error without a specific code. */
const tooMany = 'raise its maxclients, or let fewer connect: each process of svc needs two connections'

/** Codes of errors that the operator has to fix. */
const lasting: ReadonlyMap<string, string> = new Map([
  ['DENIED', 'its protected mode accepts only local clients: give it a password, or bind it'],
  ['CROSSSLOT', 'it is a node of a cluster; a single server is needed'],
  ['MOVED', 'it is a node of a cluster; a single server is needed'],
  ['NOAUTH', 'it requires a password'],
  ['NOPERM', 'the ACL rules of this user do not allow it'],
  ['WRONGPASS', 'the user or the password is wrong'],
])

/**
 * Whether the same command may succeed later: the server is away, or refuses it for now. Any other error is a mistake
 * in the command or in the user's rights.
 */
export function isTemporary(error: unknown): boolean {
  return error instanceof RedisAwayError || (error instanceof RedisReplyError && temporary.has(error.code))
}

/** Returns the message of a connection error. Node's error for a host with several addresses has only nested ones. */
export function describe(problem: Error | undefined): string {
  if (!(problem instanceof AggregateError)) return problem?.message ?? 'it does not answer'
  return problem.errors.map((each: unknown) => reasonOf(each)).join(', ')
}

/** Makes the error that a request fails with: 503 `shared_away` for a temporary error, the same error otherwise. */
export function answerFor(error: unknown): unknown {
  return isTemporary(error) ? awayError(reasonOf(error), error) : error
}

/**
 * Waits for a reply and turns errors into those of a request, as {@link answerFor} does.
 * @param what names the requested thing in a log line: `a session`
 * @param onProblem called when a connected server temporarily refuses it
 */
export async function answered<T>(what: string, reply: Promise<T>, onProblem: (message: string) => void): Promise<T> {
  try {
    return await reply
  } catch (error) {
    if (isTemporary(error) && !(error instanceof RedisAwayError)) {
      onProblem(`the shared engine refuses ${what}: ${reasonOf(error)}`)
    }
    throw answerFor(error)
  }
}
