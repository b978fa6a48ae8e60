/**
 * Keeps one connection to a server open: reopens it whenever it ends, after growing random pauses, so that many
 * processes do not reconnect at the same moment.
 */
import { performance } from 'node:perf_hooks'
import type { Beating } from '../base/heartbeat.ts'
import { beatMsFor, Connection, type ConnectionOptions } from './connection.ts'
import { describe, RedisAwayError, RedisForeignError, RedisReplyError } from './errors.ts'

/**
 * `connecting`: waiting for the first connection, for `connectTimeoutMs` at most; `away`: there is no connection, and
 * attempts continue; `closed`: no more attempts.
 */
export type RedisState = 'connecting' | 'ready' | 'away' | 'closed'

/** The options of a link and of its connections. */
export interface LinkOptions extends Omit<ConnectionOptions, 'onReady' | 'onEnd'> {
  /** A random number from 0 to below 1. */
  readonly random: () => number
  /** Called after each change of the state. */
  readonly onState: (state: RedisState) => void
}

/**
 * The maximum pause in milliseconds after the first failure, which doubles with each failure, and after any failure.
 */
const firstPauseMs = 50
const maxPauseMs = 1000
/** A connection that ends within this time, in milliseconds, counts as another failure. */
const steadyMs = 1000

/** A connection that is reopened whenever it ends. */
export class Link implements Beating {
  readonly #options: LinkOptions
  #pauseTimer: NodeJS.Timeout | undefined = undefined
  /** The connection that is open or being opened. */
  #current: Connection | undefined = undefined
  #state: RedisState = 'connecting'
  /** Beats while waiting for the first connection. */
  #beats = 0
  #problem: Error | undefined = undefined
  /** Failures since the last connection that lasted. */
  #failures = 0
  #readyAt = 0
  #closing: Promise<void> | undefined = undefined
  #onClosed = (): void => {}

  /** Starts connecting at once. */
  constructor(options: LinkOptions) {
    this.#options = options
    options.heartbeat.add(this)
    this.#open()
  }

  /** Called by the heartbeat until the state changes for the first time. */
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

  /** Makes the error of a command that cannot be sent. */
  awayError(): RedisAwayError {
    const { label } = this.#options.target
    if (this.#state === 'closed') return new RedisAwayError(`The client of ${label} is closed`)
    return new RedisAwayError(`${label} is away: ${describe(this.#problem)}`, { cause: this.#problem })
  }

  /**
   * Resolves after all pending replies, when the connection has ended. A second call returns the same promise.
   */
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
    // The error of an earlier attempt explains more.
    if (!(this.#problem instanceof RedisReplyError && isBareLoss(problem))) this.#problem = problem
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

/** Whether the server closed the connection during a write, so that the reason it sent was lost. */
function isBareLoss(problem: Error): boolean {
  const { code } = problem as NodeJS.ErrnoException
  return code === 'EPIPE' || code === 'ECONNRESET'
}
