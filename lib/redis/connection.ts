/**
 * One connection to a Redis server: it greets, then sends commands and hands their replies back in order. Commands of
 * one turn of the event loop go in one write. When it ends, for whatever reason, it is over: `link.ts` opens another.
 *
 * Surprise: silence is counted in beats of a heartbeat, not read from a clock, so that a process that stood still does
 * not cut a server whose answer it had no time to read. An idle connection is asked with PING, so that a machine that is
 * gone is noticed.
 */
import type { Socket } from 'node:net'
import type { Beating, Heartbeat } from '../base/heartbeat.ts'
import { RedisAwayError, RedisForeignError, RedisProtocolError, RedisReplyError, RedisUnknownOutcomeError } from './errors.ts'
import { isList, listIn, textIn, type Command, type Reply } from './reply.ts'
import { CommandBatch, ReplyParser } from './resp.ts'
import { describe, openSocket } from './socket.ts'
import type { RedisTarget } from './url.ts'

/** Who waits for a reply; one of both is called, once. */
export interface Waiter {
  resolve(reply: Reply): void
  reject(error: Error): void
}

/** What shows that the data under a name are of those who connect. */
export interface Claim {
  /** The key that has the mark of whoever connected last. */
  readonly key: string
  /** The marks that count; the first is left there. Where there is none yet, whoever comes first leaves one. */
  readonly marks: readonly string[]
  /** What to say where another mark is there. */
  readonly refusal: string
}

export interface ConnectionOptions {
  readonly target: RedisTarget
  /** Made before the first command; none unless given. */
  readonly claim?: Claim | undefined
  /** What the server lists the connection as, without spaces. */
  readonly name: string
  /** Milliseconds until the server must have answered the greeting. */
  readonly connectTimeoutMs: number
  /** Beats every {@link beatMsFor} milliseconds. */
  readonly heartbeat: Heartbeat
  /** Milliseconds of silence, while a reply is awaited, after which the connection ends. */
  readonly commandTimeoutMs: number
  /** Called once, when commands can be sent. */
  readonly onReady: () => void
  /** Called once, when it is over. All who waited have been told. */
  readonly onEnd: (problem: Error) => void
  /** Called with each message of a channel that was subscribed to. */
  readonly onMessage?: (channel: string, text: string) => void
}

/** Replies that are waited for at once, and bytes that the operating system has not taken: more are refused. */
const maxPending = 100_000
const maxUnsentBytes = 64 * 2 ** 20
/** Milliseconds of silence on an idle connection until it is asked whether it is there. */
const idleMs = 1000
const messageKind = new TextEncoder().encode('message')

/** KEYS: the mark. ARGV: the marks that count. Gives 0 where there is another one. */
const claimScript = `
local found = redis.call('GET', KEYS[1])
if found == ARGV[1] then return 1 end
local counts = not found
for _, mark in ipairs(ARGV) do counts = counts or found == mark end
if not counts then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`

/** How many milliseconds apart the beats must be for a time-out. */
export function beatMsFor(commandTimeoutMs: number): number {
  return Math.min(250, Math.ceil(commandTimeoutMs / 4))
}

export class Connection implements Beating {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  readonly #parser = new ReplyParser((reply) => this.#take(reply))
  readonly #batch = new CommandBatch()
  /** Those who wait, from `#first` on, in the order of their commands; the last `#unsent` of these are in the batch. */
  #waiting: Waiter[] = []
  #first = 0
  #unsent = 0
  /** Beats since something was heard, or since a reply is awaited. */
  #silentBeats = 0
  /** Beats until the greeting was answered; undefined once it was. */
  #greetingBeats: number | undefined = 0
  #isOver = false
  #isEnding = false
  /** Scripts that were sent on it, so that the server has them. */
  readonly scripts = new Set<string>()

  constructor(options: ConnectionOptions) {
    this.#options = options
    options.heartbeat.add(this)
    this.#socket = openSocket(options.target, () => this.#greet())
    this.#socket.on('data', (chunk: Buffer) => this.#read(chunk))
    this.#socket.on('error', (error) => this.destroy(error))
    this.#socket.on('close', () => this.destroy(new Error('it closed the connection')))
  }

  /**
   * Sends a command with the others of this turn. The waiter is told RedisAwayError when it was not sent, and
   * RedisUnknownOutcomeError when it was and no reply came. Throws TypeError for a number that is not finite.
   */
  send(command: Command, waiter: Waiter): void {
    const pending = this.#pending
    if (this.#isOver || this.#isEnding) return waiter.reject(new RedisAwayError(`The connection to ${this.#options.target.label} has ended`))
    if (pending >= maxPending || this.#socket.writableLength >= maxUnsentBytes) {
      return waiter.reject(new RedisAwayError(`${this.#options.target.label} is behind: ${pending} commands wait for their replies`))
    }
    this.#batch.add(command)
    if (pending === 0) this.#silentBeats = 0
    if (this.#unsent === 0) setImmediate(this.#flush)
    this.#unsent += 1
    this.#waiting.push(waiter)
  }

  /** Takes no more commands, and ends when the replies that are awaited have come. */
  end(): void {
    this.#isEnding = true
    if (this.#pending === 0) this.destroy(new Error('it was closed here'))
  }

  /** Ends at once. A second call does nothing. */
  destroy(problem: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    const { heartbeat, onEnd } = this.#options
    heartbeat.remove(this)
    this.#socket.destroy()
    this.#rejectAll(problem)
    onEnd(problem)
  }

  /** For the heartbeat. */
  beat(): void {
    const { commandTimeoutMs, connectTimeoutMs } = this.#options
    const beatMs = beatMsFor(commandTimeoutMs)
    this.#silentBeats += 1
    if (this.#greetingBeats !== undefined) {
      this.#greetingBeats += 1
      if (this.#greetingBeats * beatMs <= connectTimeoutMs) return
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
    const pieces = this.#batch.take()
    if (pieces.length > 1) this.#socket.cork()
    for (const piece of pieces) this.#socket.write(piece)
    if (pieces.length > 1) this.#socket.uncork()
  }

  /** AUTH comes first, and with it in one write what shows whether the server can be used: it may load, or be a replica. */
  #greet(): void {
    const { name, target: { user, password, database } } = this.#options
    const optional = (): void => {}
    if (user !== '' || password !== '') this.#ask(user === '' ? ['AUTH', password] : ['AUTH', user, password])
    if (database !== 0) this.#ask(['SELECT', database])
    this.#ask(['CLIENT', 'SETNAME', name], optional)
    this.#ask(['PING'])
    this.#ask(['ROLE'], (reply) => this.#begin(reply))
    this.#flush()
  }

  /** Sends a command of the connection's own. An error as its reply ends the connection, unless `onReply` takes it. */
  #ask(command: Command, onReply?: (reply: Reply) => void): void {
    const reject = (error: Error): void => {
      if (onReply !== undefined && error instanceof RedisReplyError) onReply(error)
      else this.destroy(error)
    }
    this.send(command, { resolve: onReply ?? (() => {}), reject })
  }

  /** @param role what ROLE answered; an error where the user may not ask for it */
  #begin(role: Reply): void {
    const name = role instanceof RedisReplyError ? 'master' : textIn(listIn(role)[0])
    if (name !== 'master') return this.destroy(new Error(`it is a ${name === 'slave' ? 'replica' : name}; name the master`))
    const { claim } = this.#options
    if (claim === undefined) return this.#ready()
    this.#ask(['EVAL', claimScript, 1, claim.key, ...claim.marks], (reply) => {
      if (reply === 1) this.#ready()
      else this.destroy(reply instanceof RedisReplyError ? reply : new RedisForeignError(claim.refusal))
    })
  }

  #ready(): void {
    this.#greetingBeats = undefined
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
    const waiter = this.#waiting[this.#first]
    if (waiter === undefined) throw new RedisProtocolError('Redis sent a reply that nothing was asked for')
    this.#first += 1
    if (this.#first === this.#waiting.length) {
      this.#waiting = []
      this.#first = 0
    }
    if (reply instanceof RedisReplyError) this.#refuse(waiter, reply)
    else waiter.resolve(reply)
    if (this.#isEnding && this.#pending === 0) this.end()
  }

  /** A master that has become a replica says so in its answers alone. Its name may lead to the new master by now. */
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
      if (at >= sent) waiter.reject(new RedisAwayError(why, problem))
      else waiter.reject(new RedisUnknownOutcomeError(`${why}; it may have done what it had been sent`, problem))
    }
  }
}
