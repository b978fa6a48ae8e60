/**
 * A client for Redis and Valkey: commands, scripts, and the channels of their PUBLISH, over two connections that are
 * opened anew whenever they end.
 *
 * Surprise: a command fails rather than wait for a server that is away, and one that was sent without an answer is not
 * sent again. Only its caller knows whether it may be done twice. Commands before the first connection wait for it.
 */
import { createHash } from 'node:crypto'
import { Heartbeat } from '../base/heartbeat.ts'
import { beatMsFor, type Claim, type Connection, type Waiter } from './connection.ts'
import { RedisReplyError } from './errors.ts'
import { Link, type RedisState } from './link.ts'
import type { Argument, Command, Reply } from './reply.ts'
import { Subscriber, type ChannelListener, type Unsubscribe } from './subscriber.ts'
import type { RedisTarget } from './url.ts'

export interface RedisOptions {
  readonly target: RedisTarget
  /** What the server lists the connections as (CLIENT LIST): printable ASCII without spaces. */
  readonly name: string
  /** Made on each connection before its first command; none unless given. */
  readonly claim?: Claim | undefined
  /** For a connection and its greeting, and for commands that wait for the first one, counted in beats; from 1, 2000 unless given. */
  readonly connectTimeoutMs?: number
  /** How long the server may be silent while a reply is awaited; from 4, 5000 unless given. Then the connection ends. */
  readonly commandTimeoutMs?: number
  /** A random number from 0 to below 1; `Math.random` unless given. */
  readonly random?: () => number
}

/** A client. */
export interface Redis {
  /** That of the connection for commands. */
  readonly state: RedisState
  /** Why there is no connection; undefined when there is one, and before the first attempt has failed. */
  readonly problem: Error | undefined
  /**
   * Resolves with the first connection. Rejects with RedisAwayError when there is none within `connectTimeoutMs`, after
   * which the attempts go on all the same, or when the client is closed before.
   */
  readonly ready: Promise<void>
  /** Calls the listener at every change of the state, after it. Returns what ends that. */
  onState(listener: (state: RedisState) => void): () => void
  /** That of the connection for subscriptions; `connecting` before the first of these. */
  readonly hearing: RedisState
  /** As `onState`, for that. */
  onHearing(listener: (state: RedisState) => void): () => void
  /**
   * Sends a command. Those of one turn go in one write; replies come in their order, scripts included.
   * @returns a promise that rejects with RedisAwayError when it was not sent, RedisUnknownOutcomeError when it was and no
   *   answer came, RedisReplyError when the server refused it, TypeError for a number that is not finite
   */
  command(...command: Command): Promise<Reply>
  /** Prepares a script in Lua, to be made once and run often. */
  script(source: string): RedisScript
  /**
   * Subscribes to a channel. Resolves when the server has confirmed that; the listener hears what is published from then
   * on, even before the code that waits for the promise goes on. Where the client listens to that channel already, it may
   * hear what was published just before, too.
   * @returns a promise of what ends it, after which nothing is heard; it rejects as `command` does
   */
  subscribe(channel: string, listener: ChannelListener): Promise<Unsubscribe>
  /** Lets the replies come that are awaited, then ends both connections. What is given afterwards rejects. */
  close(): Promise<void>
}

/** A script. */
export interface RedisScript {
  /** Runs it with KEYS and ARGV. Rejects as `command` does. */
  run(keys: readonly string[], ...values: readonly Argument[]): Promise<Reply>
}

/** Something to send once there is a connection, and whom to tell that there is none. */
interface Waiting {
  readonly send: (connection: Connection) => void
  readonly reject: (error: Error) => void
}

/** The most that wait for the first connection. */
const maxWaiting = 100_000

/** Makes a client, which begins to connect at once. Throws TypeError for a wrong name. */
export function createRedis(options: RedisOptions): Redis {
  if (/^[!-~]+$/.test(options.name)) return new Client(options)
  throw new TypeError(`The name of a Redis connection is printable ASCII without spaces: it is ${JSON.stringify(options.name)}`)
}

class Client implements Redis {
  readonly #link: Link
  readonly #subscriber: Subscriber
  readonly #listeners = new Set<(state: RedisState) => void>()
  readonly #hearingListeners = new Set<(state: RedisState) => void>()
  /** Before the first connection, in order. */
  #waiting: Waiting[] = []
  readonly ready: Promise<void>

  constructor({ target, name, claim, connectTimeoutMs = 2000, commandTimeoutMs = 5000, random = Math.random }: RedisOptions) {
    const heartbeat = new Heartbeat(beatMsFor(commandTimeoutMs))
    const options = { target, name, claim, connectTimeoutMs, commandTimeoutMs, random, heartbeat }
    this.#link = new Link({ ...options, onState: (state) => this.#changed(state) })
    this.#subscriber = new Subscriber({
      ...options,
      onState: (state) => {
        for (const listener of this.#hearingListeners) listener(state)
      },
    })
    this.ready = new Promise((resolve, reject) => this.#whenConnected({ send: () => resolve(), reject }))
    this.ready.catch(() => {}) // Whoever wants to know asks.
  }

  get state(): RedisState {
    return this.#link.state
  }

  get problem(): Error | undefined {
    return this.#link.problem
  }

  onState(listener: (state: RedisState) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  get hearing(): RedisState {
    return this.#subscriber.state
  }

  onHearing(listener: (state: RedisState) => void): () => void {
    this.#hearingListeners.add(listener)
    return () => void this.#hearingListeners.delete(listener)
  }

  command(...command: Command): Promise<Reply> {
    return new Promise((resolve, reject) => this.#send(() => command, { resolve, reject }))
  }

  script(source: string): RedisScript {
    const sha1 = createHash('sha1').update(source).digest('hex')
    return { run: (keys, ...values) => this.#run(source, sha1, [keys.length, ...keys, ...values]) }
  }

  subscribe(channel: string, listener: ChannelListener): Promise<Unsubscribe> {
    return this.#subscriber.subscribe(channel, listener)
  }

  async close(): Promise<void> {
    await Promise.all([this.#link.close(), this.#subscriber.close()])
  }

  /**
   * The first time on a connection the source goes along. To send it only when the server asks for it would let commands
   * of later turns overtake this one; that is left for a server that forgets its scripts (SCRIPT FLUSH).
   */
  #run(source: string, sha1: string, rest: readonly Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const choose = ({ scripts }: Connection): Command => {
        if (scripts.has(sha1)) return ['EVALSHA', sha1, ...rest]
        scripts.add(sha1)
        return ['EVAL', source, ...rest]
      }
      const rejectOrRetry = (error: Error): void => {
        if (!(error instanceof RedisReplyError && error.code === 'NOSCRIPT')) return reject(error)
        this.#send(() => ['EVAL', source, ...rest], { resolve, reject })
      }
      this.#send(choose, { resolve, reject: rejectOrRetry })
    })
  }

  #send(choose: (connection: Connection) => Command, waiter: Waiter): void {
    const { connection } = this.#link
    if (connection !== undefined) connection.send(choose(connection), waiter)
    else this.#whenConnected({ send: (opened) => opened.send(choose(opened), waiter), reject: (error) => waiter.reject(error) })
  }

  #whenConnected(waiting: Waiting): void {
    if (this.#link.state === 'connecting' && this.#waiting.length < maxWaiting) this.#waiting.push(waiting)
    else waiting.reject(this.#link.awayError())
  }

  #changed(state: RedisState): void {
    const { connection } = this.#link
    for (const { send, reject } of this.#waiting.splice(0)) {
      if (connection === undefined) reject(this.#link.awayError())
      else send(connection)
    }
    for (const listener of this.#listeners) listener(state)
  }
}
