/**
 * The common part of channels and queues: their options, the subscription to the broker, and the text of an event.
 */
import type { SourceOptions } from 'svc'
import type { Heartbeat } from '../base/heartbeat.ts'
import { jsonText } from '../base/json-text.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { Broker, SourceLimits, Unsubscribe } from './broker.ts'

/** Counters since the start. */
export interface EventCounts {
  /** Events published in channels and pushed to queues by this process. */
  published: number
  /** Events delivered, counted once for each client that got one. */
  delivered: number
  /** Streams cut because their clients did not read. */
  slow: number
}

/** Services that all sources of one server share. */
export interface SourceServices {
  readonly broker: Broker
  /** Whether the broker keeps events when the server ends by any cause. */
  readonly isDurable: boolean
  readonly counts: EventCounts
  readonly heartbeat: Heartbeat
  /** Set while the broker is cut off: requests that would wait fail with this error. */
  readonly cutOff: Error | undefined
  /** Logs an error that reaches no caller. Skips "the broker is away", which the broker logs itself. */
  readonly logError: (message: string, error: unknown) => void
  /** Returns the outcome and logs its rejection, so that the application need not handle it. */
  readonly logRejection: <T>(message: string, outcome: MaybePromise<T>) => MaybePromise<T>
  /** Logs ignored input from another process, at most once a second. */
  readonly logDamaged: (message: string) => void
  /** Logs that a stream was cut. */
  readonly logSlow: (message: string) => void
  /** A stream with more unread bytes than this is cut. */
  readonly maxUnreadBytes: number
}

/** The limits of a channel or queue that sets none: 1000 events for up to an hour. */
export const defaultLimits: SourceLimits = { maxEvents: 1000, maxAgeMs: 3_600_000 }

const retryMs = 1000
const maxEventsLimit = 1_000_000

/**
 * A channel or queue with its subscription to the broker. The subscription starts with the first wait and ends when the
 * source has been idle for long.
 */
export abstract class Source {
  readonly name: string
  readonly limits: SourceLimits
  readonly services: SourceServices
  /** The time of the last use, set by `events.ts`. */
  usedAt = 0
  #subscription: 'none' | 'active' | Promise<void> = 'none'
  #unsubscribe: Unsubscribe | undefined = undefined
  #retryTimer: NodeJS.Timeout | undefined = undefined

  /** Called by `events.ts`. */
  constructor(name: string, limits: SourceLimits, services: SourceServices) {
    this.name = name
    this.limits = limits
    this.services = services
  }

  /** Whether there are no waits and no listeners. */
  abstract get isIdle(): boolean
  /** Called when the broker is cut off: ends all waits. */
  abstract cutOff(): void

  /** Subscribes at the broker. */
  protected abstract subscribeToBroker(): MaybePromise<Unsubscribe>
  /** Called before the subscription counts as active; may reject. */
  protected abstract onSubscribed(): MaybePromise<void>
  /** The log message for a failure. */
  protected abstract get failureMessage(): string

  /** Throws the error of the broker while it is cut off. */
  checkReach(): void {
    if (this.services.cutOff !== undefined) throw this.services.cutOff
  }

  /** Resolves when the subscription is active; rejects when the broker refuses it. */
  async listen(): Promise<void> {
    if (this.#subscription === 'active') return
    if (this.#subscription === 'none') {
      this.#subscription = this.#subscribe().catch((error: unknown) => {
        this.rest()
        throw error
      })
    }
    await this.#subscription
  }

  /** Ends the subscription; the next wait starts a new one. */
  rest(): void {
    clearTimeout(this.#retryTimer)
    this.#retryTimer = undefined
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    this.#subscription = 'none'
  }

  /** Frees everything. */
  close(): void {
    this.rest()
  }

  /** Whether the subscription is active. */
  get isListening(): boolean {
    return this.#subscription === 'active'
  }

  /** Subscribes now, or later when the broker fails. */
  protected listenInBackground(): void {
    this.listen().catch((error: unknown) => this.retryLater(error))
  }

  /** Logs a failure of the broker, and after a second subscribes again unless the source is idle by then. */
  protected retryLater(error: unknown): void {
    this.services.logError(this.failureMessage, error)
    this.#retryTimer ??= setTimeout(() => {
      this.#retryTimer = undefined
      if (!this.isIdle) this.listenInBackground()
    }, retryMs).unref()
  }

  async #subscribe(): Promise<void> {
    const subscribed = this.subscribeToBroker()
    this.#unsubscribe = subscribed instanceof Promise ? await subscribed : subscribed
    await this.onSubscribed()
    this.#subscription = 'active'
  }
}

/**
 * Reads the limits from the options of a source; undefined without options.
 * @param what the source, for messages: `channel "a"`
 * @throws TypeError for a wrong option
 */
export function limitsOf(what: string, options: SourceOptions | undefined): SourceLimits | undefined {
  if (options === undefined) return undefined
  checkOptions(what, options, ['events', 'age_s', 'durable'])
  const { events = defaultLimits.maxEvents, age_s = defaultLimits.maxAgeMs / 1000, durable = false } = options
  if (!Number.isInteger(events) || events < 1 || events > maxEventsLimit) {
    const range = `an integer from 1 to ${maxEventsLimit}`
    throw new TypeError(`Cannot open ${what}: events must be ${range}: it is ${String(events)}`)
  }
  if (typeof age_s !== 'number' || !(age_s > 0)) {
    throw new TypeError(`Cannot open ${what}: age_s must be a number above 0: it is ${String(age_s)}`)
  }
  if (typeof durable !== 'boolean') {
    throw new TypeError(`Cannot open ${what}: durable must be true or false: it is ${String(durable)}`)
  }
  return { maxEvents: events, maxAgeMs: age_s * 1000 }
}

/**
 * Checks that options are an object with known names only.
 * @throws TypeError when they are not
 */
export function checkOptions(what: string, options: unknown, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new TypeError(`Cannot open ${what}: the options must be an object: they are ${String(options)}`)
  }
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue
    throw new TypeError(`Cannot open ${what}: there is no option "${name}": there are ${names.join(', ')}`)
  }
}

/**
 * Returns the option `timeout_s` in milliseconds.
 * @param doing the purpose, for the message: `open a stream`
 * @throws TypeError when it is not a number from 0
 */
export function checkTimeout(doing: string, seconds: unknown): number {
  if (typeof seconds === 'number' && seconds >= 0) return seconds * 1000
  throw new TypeError(`Cannot ${doing}: timeout_s must be a number of seconds from 0: it is ${String(seconds)}`)
}

/** Returns an event as JSON text. Throws TypeError for a value that JSON cannot hold. */
export function textOf(what: string, value: unknown): string {
  return jsonText(value, `Cannot publish in ${what}: an event is a JSON value`)
}
