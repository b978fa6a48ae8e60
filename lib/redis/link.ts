/**
 * Keeps one connection to a server: opens it, and another one whenever it ends, with pauses that grow and are random, so
 * that many processes do not come back in the same moment.
 */
import { performance } from 'node:perf_hooks'
import type { Beating } from '../base/heartbeat.ts'
import { beatMsFor, Connection, type ConnectionOptions } from './connection.ts'
import { RedisAwayError, RedisForeignError } from './errors.ts'
import { describe } from './socket.ts'

/**
 * `connecting`: before the first connection, as long as that may take; `away`: there is none, and another attempt goes
 * on or is about to; `closed`: there will be none.
 */
export type RedisState = 'connecting' | 'ready' | 'away' | 'closed'

export interface LinkOptions extends Omit<ConnectionOptions, 'onReady' | 'onEnd'> {
  /** A random number from 0 to below 1. */
  readonly random: () => number
  /** Called at every change, after it. */
  readonly onState: (state: RedisState) => void
}

/** The longest pause after the first failure, which doubles from failure to failure, and after any; milliseconds. */
const firstPauseMs = 50
const maxPauseMs = 1000
/** A connection that ends sooner counts as a failure like those before it. */
const steadyMs = 1000

export class Link implements Beating {
  readonly #options: LinkOptions
  #pauseTimer: NodeJS.Timeout | undefined = undefined
  /** The one that is open or being opened. */
  #current: Connection | undefined = undefined
  #state: RedisState = 'connecting'
  /** Beats before the first connection. */
  #beats = 0
  #problem: Error | undefined = undefined
  /** Since the last steady connection. */
  #failures = 0
  #readyAt = 0
  #closing: Promise<void> | undefined = undefined
  #onClosed = (): void => {}

  /** Begins to connect at once. */
  constructor(options: LinkOptions) {
    this.#options = options
    options.heartbeat.add(this)
    this.#open()
  }

  /** For the heartbeat, until there is a first connection or none has come in time. */
  beat(): void {
    const { connectTimeoutMs, commandTimeoutMs } = this.#options
    this.#beats += 1
    if (this.#beats * beatMsFor(commandTimeoutMs) <= connectTimeoutMs) return
    this.#problem ??= new Error(`it did not answer within ${connectTimeoutMs} ms`)
    this.#become('away')
  }

  get state(): RedisState {
    return this.#state
  }

  /** The connection when the state is `ready`. */
  get connection(): Connection | undefined {
    return this.#state === 'ready' ? this.#current : undefined
  }

  /** Why the last connection or attempt ended; undefined when the state is `ready`. */
  get problem(): Error | undefined {
    return this.#problem
  }

  /** The error of a command that cannot be sent, with the reason. */
  awayError(): RedisAwayError {
    const { label } = this.#options.target
    if (this.#state === 'closed') return new RedisAwayError(`The client of ${label} is closed`)
    const problem = this.#problem
    return new RedisAwayError(`${label} is away${problem === undefined ? '' : `: ${describe(problem)}`}`, problem)
  }

  /** Lets the replies come that are awaited, then ends. Resolves when it has. A second call is the same as the first. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  #close(): Promise<void> {
    const { connection } = this
    clearTimeout(this.#pauseTimer)
    this.#become('closed')
    return new Promise((resolve) => {
      this.#onClosed = resolve
      if (connection !== undefined) connection.end()
      else if (this.#current !== undefined) this.#current.destroy(new Error('it was closed here'))
      else resolve()
    })
  }

  #open(): void {
    this.#current = new Connection({
      ...this.#options,
      onReady: () => this.#ready(),
      onEnd: (problem) => this.#ended(problem),
    })
  }

  #ready(): void {
    this.#readyAt = performance.now()
    this.#problem = undefined
    this.#become('ready')
  }

  #ended(problem: Error): void {
    this.#current = undefined
    if (this.#state === 'closed') return this.#onClosed()
    if (this.#state === 'ready' && performance.now() - this.#readyAt >= steadyMs) this.#failures = 0
    this.#problem = problem
    const longestMs = Math.min(maxPauseMs, firstPauseMs * 2 ** this.#failures)
    this.#failures += 1
    this.#pauseTimer = setTimeout(() => this.#open(), this.#options.random() * longestMs)
    const isHopeless = this.#state === 'connecting' && problem instanceof RedisForeignError
    if (isHopeless || this.#state === 'ready') this.#become('away')
  }

  #become(state: RedisState): void {
    this.#options.heartbeat.remove(this)
    this.#state = state
    this.#options.onState(state)
  }
}
