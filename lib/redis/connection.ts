/**
 * One connection to a Redis server. It signs in, sends commands and matches the replies to them in order; the commands
 * of one turn of the event loop are sent in one write. A connection that has ended is not reused: `link.ts` opens
 * another.
 *
 * Surprise: silence is counted in heartbeats instead of clock time. Otherwise a process that was suspended would
 * disconnect from a server whose answer it had no time to read. An idle connection sends PING, to detect a machine that
 * has disappeared.
 */
import { connect, isIP, type Socket } from 'node:net'
import type { Beating, Heartbeat } from '../base/heartbeat.ts'
import {
  describe,
  RedisAwayError,
  RedisForeignError,
  RedisProtocolError,
  RedisReplyError,
  RedisUnknownOutcomeError,
} from './errors.ts'
import { isList, listIn, textIn, type Command, type Reply } from './reply.ts'
import { commandText, ReplyParser } from './resp.ts'
import type { RedisTarget } from '../config/redis-url.ts'

/** Waits for a reply. One of the two functions is called, once. */
export interface Waiter {
  resolve(reply: Reply): void
  reject(error: Error): void
}

/** Makes sure that the data under `shared.name` belong to servers with this `app_key`. */
export interface Claim {
  /** The key that holds the mark of the server that connected last. */
  readonly key: string
  /** The accepted marks. The first one is written, also when there is no mark yet. */
  readonly marks: readonly string[]
  /** The error message when another mark is found. */
  readonly refusal: string
}

/** The options of a connection. */
export interface ConnectionOptions {
  readonly target: RedisTarget
  /** Checked before the first command; undefined: not checked. */
  readonly claim?: Claim | undefined
  /** The name of the connection in CLIENT LIST: printable ASCII without spaces. */
  readonly name: string
  /** Milliseconds to connect and sign in, and for commands to wait for the first connection; from 1. */
  readonly connectTimeoutMs: number
  /** It must beat every {@link beatMsFor} milliseconds. */
  readonly heartbeat: Heartbeat
  /** Milliseconds of silence after which the connection ends while a reply is awaited; from 4. */
  readonly commandTimeoutMs: number
  /** Called once, when commands can be sent. */
  readonly onReady: () => void
  /** Called once, when the connection has ended and every waiter has been rejected. */
  readonly onEnd: (problem: Error) => void
  /** Called with each message of a subscribed channel. */
  readonly onMessage?: (channel: string, text: string) => void
}

/**
 * The maximum of pending replies, and of bytes that the system has not accepted yet. Further commands are refused.
 */
const maxPending = 100_000
const maxUnsentBytes = 64 * 2 ** 20
/** Milliseconds of silence after which an idle connection sends PING. */
const idleMs = 1000
const messageKind = new TextEncoder().encode('message')

/** KEYS: the mark. ARGV: the accepted marks. Returns 0 when the mark is another one. */
const claimScript = `
local found = redis.call('GET', KEYS[1])
if found == ARGV[1] then return 1 end
local counts = not found
for _, mark in ipairs(ARGV) do counts = counts or found == mark end
if not counts then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`

/** Returns the milliseconds between two beats that a time-out requires. */
export function beatMsFor(commandTimeoutMs: number): number {
  return Math.min(250, Math.ceil(commandTimeoutMs / 4))
}

/** A connection to a Redis server: sends commands in order, and settles the waiter of each with its reply. */
export class Connection implements Beating {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  readonly #parser = new ReplyParser((reply) => this.#take(reply))
  /** The commands to write at the end of the turn. */
  #text = ''
  /** The waiters from `#first` on, in the order of their commands. The last `#unsent` commands are still in `#text`. */
  #waiting: Waiter[] = []
  #first = 0
  #unsent = 0
  /** Beats since bytes were received, or since the first pending command. */
  #silentBeats = 0
  /** Beats while signing in; undefined afterwards. */
  #signInBeats: number | undefined = 0
  /** The last error while signing in. A server that refuses clients sends it and closes the connection. */
  #refusal: RedisReplyError | undefined = undefined
  #isOver = false
  #isEnding = false
  /** The SHA-1 of each script that was sent on this connection, and that the server therefore knows. */
  readonly scripts = new Set<string>()

  constructor(options: ConnectionOptions) {
    this.#options = options
    options.heartbeat.add(this)
    // Read before the first write: a failed write would hide the reason sent by a server that refuses clients.
    this.#socket = openSocket(options.target, () => setImmediate(() => setImmediate(() => this.#signIn())))
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk))
    this.#socket.on('error', (error) => this.destroy(this.#refusal ?? error))
    this.#socket.on('close', () => this.destroy(this.#refusal ?? new Error('it closed the connection')))
  }

  /**
   * Sends a command together with the others of this turn. The waiter gets RedisAwayError when the command was not
   * sent, and RedisUnknownOutcomeError when it was sent but not answered.
   */
  send(command: Command, waiter: Waiter): void {
    const pending = this.#pending
    const { label } = this.#options.target
    if (this.#isOver || this.#isEnding) return waiter.reject(new RedisAwayError(`The connection to ${label} has ended`))
    if (pending >= maxPending || this.#socket.writableLength >= maxUnsentBytes) {
      return waiter.reject(new RedisAwayError(`${label} is behind: ${pending} commands wait for their replies`))
    }
    this.#text += commandText(command)
    if (pending === 0) this.#silentBeats = 0
    if (this.#unsent === 0) setImmediate(this.#flush)
    this.#unsent += 1
    this.#waiting.push(waiter)
  }

  /** Accepts no more commands, and ends the connection after all pending replies. */
  end(): void {
    this.#isEnding = true
    if (this.#pending === 0) this.destroy(new Error('it was closed here'))
  }

  /** Ends the connection at once. A second call does nothing. */
  destroy(problem: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    const { heartbeat, onEnd } = this.#options
    heartbeat.remove(this)
    this.#socket.destroy()
    this.#rejectAll(problem)
    onEnd(problem)
  }

  /** Called by the heartbeat. */
  beat(): void {
    const { commandTimeoutMs, connectTimeoutMs } = this.#options
    const beatMs = beatMsFor(commandTimeoutMs)
    this.#silentBeats += 1
    if (this.#signInBeats !== undefined) {
      this.#signInBeats += 1
      if (this.#signInBeats * beatMs <= connectTimeoutMs) return
      this.destroy(new Error(`it did not answer within ${connectTimeoutMs} ms`))
    } else if (this.#pending > 0) {
      if (this.#silentBeats * beatMs <= commandTimeoutMs) return
      this.destroy(new Error(`it did not answer within ${commandTimeoutMs} ms`))
    } else if (this.#silentBeats * beatMs >= idleMs) this.#ask(['PING'], () => {})
  }

  get #pending(): number {
    return this.#waiting.length - this.#first
  }

  readonly #flush = (): void => {
    if (this.#isOver) return
    this.#unsent = 0
    const text = this.#text
    this.#text = ''
    if (text !== '') this.#socket.write(text)
  }

  /**
   * Sends AUTH, and in the same write the commands that reveal whether the server is loading data or is a replica.
   */
  #signIn(): void {
    if (this.#isOver) return
    const { name, target: { user, password, database } } = this.#options
    const optional = (): void => {}
    if (user !== '' || password !== '') this.#ask(user === '' ? ['AUTH', password] : ['AUTH', user, password])
    if (database !== 0) this.#ask(['SELECT', database])
    this.#ask(['CLIENT', 'SETNAME', name], optional)
    this.#ask(['PING'])
    this.#ask(['ROLE'], (reply) => this.#begin(reply))
    this.#flush()
  }

  /** Sends an internal command. An error reply ends the connection, unless there is an `onReply`. */
  #ask(command: Command, onReply?: (reply: Reply) => void): void {
    const reject = (error: Error): void => {
      if (onReply !== undefined && error instanceof RedisReplyError) onReply(error)
      else this.destroy(error)
    }
    this.send(command, { resolve: onReply ?? (() => {}), reject })
  }

  /** Checks that the server is still a master, and ends the connection when it is not. */
  checkRole(): void {
    const resolve = (reply: Reply): void => {
      const kind = otherThanMaster(reply)
      if (kind !== undefined) this.destroy(new Error(`it has become a ${kind}`))
    }
    this.send(['ROLE'], { resolve, reject: () => {} }) // The user may not run it, or the connection has ended.
  }

  /** @param role the reply to ROLE; an error when the user may not run it */
  #begin(role: Reply): void {
    const kind = otherThanMaster(role)
    if (kind !== undefined) return this.destroy(new Error(`it is a ${kind}; name the master`))
    const { claim } = this.#options
    if (claim === undefined) return this.#ready()
    this.#ask(['EVAL', claimScript, 1, claim.key, ...claim.marks], (reply) => {
      if (reply === 1) this.#ready()
      else this.destroy(reply instanceof RedisReplyError ? reply : new RedisForeignError(claim.refusal))
    })
  }

  #ready(): void {
    this.#signInBeats = undefined
    this.#refusal = undefined
    this.#options.onReady()
  }

  #read(chunk: Buffer): void {
    this.#silentBeats = 0
    try {
      this.#parser.read(chunk)
    } catch (error) {
      if (!(error instanceof RedisProtocolError)) throw error
      this.destroy(error)
    }
  }

  #take(reply: Reply): void {
    if (this.#isOver || this.#isMessage(reply)) return
    if (reply instanceof RedisReplyError && this.#signInBeats !== undefined) this.#refusal = reply
    const waiter = this.#waiting[this.#first]
    if (waiter === undefined && this.#refusal !== undefined) return this.destroy(this.#refusal)
    if (waiter === undefined) throw new RedisProtocolError('Redis sent a reply without a command')
    this.#first += 1
    if (this.#first === this.#waiting.length) {
      this.#waiting = []
      this.#first = 0
    }
    if (reply instanceof RedisReplyError) this.#refuse(waiter, reply)
    else waiter.resolve(reply)
    if (this.#isEnding && this.#pending === 0) this.end()
  }

  /** READONLY: the server has become a replica. Reconnects: its host name may resolve to the new master by now. */
  #refuse(waiter: Waiter, error: RedisReplyError): void {
    waiter.reject(error)
    if (error.code === 'READONLY') this.destroy(new Error('it has become a replica'))
  }

  #isMessage(reply: Reply): boolean {
    const { onMessage } = this.#options
    if (onMessage === undefined || !isList(reply)) return false
    const [kind, channel, text] = reply
    if (!Buffer.isBuffer(kind) || !kind.equals(messageKind)) return false
    onMessage(textIn(channel), textIn(text))
    return true
  }

  #rejectAll(problem: Error): void {
    const waiting = this.#waiting.slice(this.#first)
    const sent = waiting.length - this.#unsent
    this.#waiting = []
    this.#first = 0
    const why = `${this.#options.target.label} is away: ${describe(problem)}`
    for (const [at, waiter] of waiting.entries()) {
      if (at >= sent) waiter.reject(new RedisAwayError(why, { cause: problem }))
      else waiter.reject(new RedisUnknownOutcomeError(`${why}; it may have run the command`, { cause: problem }))
    }
  }
}

/** Returns the role of a server from its reply to ROLE; undefined for a master, and when the user may not run it. */
function otherThanMaster(role: Reply): string | undefined {
  const name = role instanceof RedisReplyError ? 'master' : textIn(listIn(role)[0])
  return name === 'master' ? undefined : name === 'slave' ? 'replica' : name
}

/** Starts connecting. Node checks the certificate; `NODE_EXTRA_CA_CERTS` adds authorities. */
function openSocket({ address }: RedisTarget, onOpen: () => void): Socket {
  if ('path' in address) return connect({ path: address.path }, onOpen)
  const { host, port, tls } = address
  const options = { host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 } as const
  if (!tls) return connect(options, onOpen)
  const { connect: connectTls } = process.getBuiltinModule('node:tls') // Loaded on demand.
  return connectTls({ ...options, ...(isIP(host) === 0 && { servername: host }) }, onOpen)
}
