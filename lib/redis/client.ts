/**
 * A client for Redis and Valkey: commands, scripts and subscriptions, over two connections that are reopened
 * whenever they end.
 *
 * Surprise: while the server is away, commands fail at once. A command that was sent but not answered is not resent,
 * since only the caller knows whether it may run twice. Commands before the first connection wait for it.
 */
import { createHash } from 'node:crypto'
import { Heartbeat, type Beating } from '../base/heartbeat.ts'
import { beatMsFor, type Connection, type Waiter } from './connection.ts'
import { RedisReplyError } from './errors.ts'
import { Link, type LinkOptions, type RedisState } from './link.ts'
import { integerIn, listIn, type Argument, type Command, type Reply } from './reply.ts'
import { Subscriber, type ChannelListener, type Unsubscribe } from './subscriber.ts'

/** How to reach a Redis server. The time-outs are 2000 and 5000 by default, `random` is `Math.random`. */
export type RedisOptions = Pick<LinkOptions, 'target' | 'name' | 'claim'>
  & Partial<Pick<LinkOptions, 'connectTimeoutMs' | 'commandTimeoutMs' | 'random'>>
  & {
    /**
     * A channel without other subscribers. It shows whether messages come from the same server as replies. Without it,
     * this is not checked.
     */
    readonly probe?: string
    /** Called when `messageProblem` is set or cleared. */
    readonly onMessageProblem?: (problem: Error | undefined) => void
  }

/** A prepared Lua script. */
export interface RedisScript {
  /** Runs the script with KEYS and ARGV. Rejects as `command` does. */
  run(keys: readonly string[], ...values: readonly Argument[]): Promise<Reply>
}

/** A command that waits for the first connection. */
interface Waiting {
  readonly send: (connection: Connection) => void
  readonly reject: (error: Error) => void
}

/** The most commands that wait for the first connection. */
const maxWaiting = 100_000
/** Milliseconds between two checks of the server. */
const checkMs = 1000

/** A client. It starts connecting at once. */
export class Redis implements Beating {
  readonly #heartbeat: Heartbeat
  readonly #beatsPerCheck: number
  readonly #probe: string | undefined
  readonly #onMessageProblem: (problem: Error | undefined) => void
  #hadMessageProblem = false
  #messageProblem: Error | undefined
  readonly #link: Link
  readonly #subscriber: Subscriber
  readonly #listeners = new Set<(state: RedisState) => void>()
  /** In order; empty after the first connection. */
  #waiting: Waiting[] = []
  /**
   * Resolves with the first connection. Rejects with RedisAwayError when there is none within `connectTimeoutMs`,
   * though attempts continue, and when the client is closed first.
   */
  readonly ready: Promise<void>

  constructor(settings: RedisOptions) {
    const { connectTimeoutMs = 2000, commandTimeoutMs = 5000, random = Math.random } = settings
    const beatMs = beatMsFor(commandTimeoutMs)
    const heartbeat = new Heartbeat(beatMs)
    const options = { ...settings, connectTimeoutMs, commandTimeoutMs, random, heartbeat }
    this.#heartbeat = heartbeat
    this.#beatsPerCheck = Math.ceil(checkMs / beatMs)
    this.#probe = settings.probe
    this.#onMessageProblem = settings.onMessageProblem ?? (() => {})
    this.#link = new Link({ ...options, onState: (state) => this.#changed(state) })
    this.#subscriber = new Subscriber(options, settings.probe)
    heartbeat.add(this)
    this.ready = new Promise((resolve, reject) => this.#whenConnected({ send: () => resolve(), reject }))
    this.ready.catch(() => {}) // Avoids an unhandled rejection when no caller awaits it.
  }

  /** The state of the connection for commands. */
  get state(): RedisState {
    return this.#link.state
  }

  /** Why there is no connection; undefined while there is one, and before the first attempt has failed. */
  get problem(): Error | undefined {
    return this.#link.problem
  }

  /** Why no messages can arrive for a second or longer; undefined while they can, and before any subscription. */
  get messageProblem(): Error | undefined {
    return this.#messageProblem
  }

  /** Calls the listener after each change of `state`. Returns a function that removes it. */
  onState(listener: (state: RedisState) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /**
   * Sends a command. The commands of one turn are sent in one write, and replies arrive in the same order, including
   * those of scripts.
   * @returns a promise that rejects with RedisAwayError when the command was not sent, RedisUnknownOutcomeError when it
   *   was sent but not answered, RedisReplyError when the server refused it
   */
  command(...command: Command): Promise<Reply> {
    return new Promise((resolve, reject) => this.#send(() => command, { resolve, reject }))
  }

  /** Prepares a Lua script; prepare each one once. */
  script(source: string): RedisScript {
    const sha1 = createHash('sha1').update(source).digest('hex')
    return { run: (keys, ...values) => this.#run(source, sha1, [keys.length, ...keys, ...values]) }
  }

  /**
   * Subscribes to a channel. Resolves when the server has confirmed it. The listener gets all messages published from
   * then on, even before the awaiting code continues. When the client has subscribed to the channel before, the
   * listener may also get messages published shortly before.
   * @returns a promise of a function that ends the subscription at once; it rejects as `command` does
   */
  subscribe(channel: string, listener: ChannelListener): Promise<Unsubscribe> {
    return this.#subscriber.subscribe(channel, listener)
  }

  /**
   * Called by the heartbeat: checks once a second that the server is still a master. A server that becomes a
   * replica keeps its connections, but clients publish no more messages on it.
   */
  beat(beats: number): void {
    if (beats % this.#beatsPerCheck !== 0) return
    this.#checkMessages()
    const { connection } = this.#link
    if (connection === undefined) return
    connection.checkRole()
    this.#compareServers(connection)
  }

  /** Waits for pending replies, then ends both connections. Further commands reject. */
  async close(): Promise<void> {
    this.#heartbeat.remove(this)
    await Promise.all([this.#link.close(), this.#subscriber.close()])
  }

  /** Reports a connection that is still lost at the second check; most are reopened earlier. */
  #checkMessages(): void {
    const { problem } = this.#subscriber
    const before = this.#messageProblem
    this.#messageProblem = this.#hadMessageProblem ? problem : undefined
    this.#hadMessageProblem = problem !== undefined
    const hasChanged = (this.#messageProblem === undefined) !== (before === undefined)
    if (hasChanged) this.#onMessageProblem(this.#messageProblem)
  }

  /**
   * Ends the connection for messages when its server is not the one for commands: the server was replaced,
   * or its name resolves to another address by now. The next connection uses the current address.
   */
  #compareServers(connection: Connection): void {
    const listening = this.#subscriber.listening
    if (this.#probe === undefined || listening === undefined) return
    const resolve = (reply: Reply): void => {
      const isElsewhere = integerIn(listIn(reply)[1]) === 0
      if (isElsewhere) listening.destroy(new Error('it is no longer the server that runs the commands'))
    }
    connection.send(['PUBSUB', 'NUMSUB', this.#probe], { resolve, reject: () => {} }) // The next check repeats it.
  }

  /**
   * Sends the source with the first run on a connection. Waiting for the server to request it (NOSCRIPT) would let
   * later commands overtake this one; that happens only after SCRIPT FLUSH.
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
    const send = (opened: Connection): void => opened.send(choose(opened), waiter)
    if (connection !== undefined) send(connection)
    else this.#whenConnected({ send, reject: (error) => waiter.reject(error) })
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
    if (connection !== undefined) this.#compareServers(connection)
  }
}
