/**
 * What channels and queues have in common: their options, what they share with the others of a server, and how a value
 * becomes the text of an event.
 */
import type { Heartbeat } from '../base/heartbeat.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { Broker, SourceLimits } from './broker.ts'

/** How much a source keeps. Given at its first use; a later use gives the same or none. */
export interface SourceOptions {
  /** The most events, from 1 to 1,000,000; 1000 unless given. */
  readonly events?: number
  /** How long an event is kept, in seconds above 0; 3600 unless given. */
  readonly age_s?: number
}

/** What was counted since the start. */
export interface EventCounts {
  /** Events published in channels and pushed to queues, by this process. */
  published: number
  /** Events handed out, once for each client that got one. */
  delivered: number
  /** Streams that were cut since their clients did not read. */
  slow: number
}

/** What the sources of one server share. */
export interface SourceParts {
  readonly broker: Broker
  readonly counts: EventCounts
  readonly heartbeat: Heartbeat
  /** Why the broker is cut off; undefined: it is not. Whoever would wait is answered with it. */
  readonly cutOff: Error | undefined
  /** Told of what failed while nobody waited for an answer. That the broker is away is told elsewhere. */
  readonly report: (message: string, error: unknown) => void
  /** Gives back what it is given, and logs a rejection: the application may wait for it or not. */
  readonly noting: <T>(message: string, outcome: MaybePromise<T>) => MaybePromise<T>
  /** Told of a stream that was cut. */
  readonly onSlow: (message: string) => void
  /** How many bytes may lie unread for one stream before it is cut. */
  readonly maxUnreadBytes: number
}

export const defaultLimits: SourceLimits = { maxEvents: 1000, maxAgeMs: 3_600_000 }

/** Milliseconds until what failed while somebody waits is tried again. */
export const retryMs = 1000

const mostEvents = 1_000_000

/**
 * The limits that options ask for; undefined without options.
 * @throws TypeError for a wrong option
 */
export function limitsOf(what: string, options: SourceOptions | undefined): SourceLimits | undefined {
  if (options === undefined) return undefined
  checkOptions(what, options, ['events', 'age_s'])
  const { events = defaultLimits.maxEvents, age_s = defaultLimits.maxAgeMs / 1000 } = options
  if (!Number.isInteger(events) || events < 1 || events > mostEvents) {
    const range = `an integer from 1 to ${mostEvents}`
    throw new TypeError(`Cannot open ${what}: events must be ${range}: it is ${String(events)}`)
  }
  if (typeof age_s !== 'number' || !(age_s > 0)) {
    throw new TypeError(`Cannot open ${what}: age_s must be a number above 0: it is ${String(age_s)}`)
  }
  return { maxEvents: events, maxAgeMs: age_s * 1000 }
}

/**
 * Holds an object of options against the names that there are.
 * @throws TypeError when it is no object, or has another name
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
 * The milliseconds of the option `timeout_s`.
 * @param doing what it is for: `open a stream`, say
 * @throws TypeError when it is no number from 0
 */
export function checkTimeout(doing: string, seconds: unknown): number {
  if (typeof seconds === 'number' && seconds >= 0) return seconds * 1000
  throw new TypeError(`Cannot ${doing}: timeout_s must be a number of seconds from 0: it is ${String(seconds)}`)
}

/**
 * The text of an event.
 * @throws TypeError for what JSON cannot hold: undefined, a function, a symbol, a bigint, a circular structure
 */
export function textOf(what: string, value: unknown): string {
  const text = JSON.stringify(value) as string | undefined // Undefined for what is left out of JSON.
  if (text !== undefined) return text
  throw new TypeError(`Cannot publish in ${what}: an event is a JSON value: it is of type ${typeof value}`)
}
