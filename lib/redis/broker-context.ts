/**
 * What the channels and the queues of the Redis broker share, and the limits of a source as arguments of their scripts.
 */
import type { SourceLimits } from '../events/broker.ts'
import type { Calls } from '../events/calls.ts'
import type { Redis } from './client.ts'
import { encoded } from './reply.ts'

/** The options of a broker in Redis. */
export interface RedisBrokerOptions {
  /** Stays open when the broker is closed. */
  readonly redis: Redis
  /** The prefix of every key, such as `svc:`. */
  readonly prefix: string
  /** The prefix of every channel of PUBLISH. It differs for each database, since PUBLISH ignores databases. */
  readonly channelPrefix: string
  /**
   * Called when events were lost, and each time a connected server refuses a command, for example for lack of memory.
   */
  readonly onProblem: (message: string) => void
}

/** What channels and queues share. */
export interface BrokerContext extends RedisBrokerOptions {
  readonly calls: Calls
}

/** The limits of a source as script arguments. */
type LimitArguments = readonly [maxEvents: number, ageUs: number, lifeMs: number]

const hourMs = 3_600_000
/** Longer than the time between two sweeps, so that a sweep still counts the events that expired. */
const sweepMs = 120_000
/** Events with a higher maximum age are kept forever. */
const longestMs = 100 * 365 * 24 * hourMs
/** An event must fit into one reply, and the client accepts 64 MiB. */
const mostBytes = 16 * 2 ** 20

/** Makes the arguments of a script from the limits of a source. */
export function limitArguments({ maxEvents, maxAgeMs }: SourceLimits): LimitArguments {
  const ageMs = Math.min(maxAgeMs, longestMs)
  return [maxEvents, Math.max(1, Math.round(ageMs * 1000)), lifeOf(ageMs)]
}

/**
 * Returns the expiry that scripts set on a source, in milliseconds. They renew it only when less than half of it is
 * left, so that most uses write nothing. An unused source therefore stays for at least half of it.
 * @param ageMs how long its events are kept
 */
export function lifeOf(ageMs: number): number {
  return 2 * (Math.ceil(Math.max(ageMs, hourMs)) + sweepMs)
}

/** Encodes the text of an event. Throws RangeError above 16 MiB, which could not be read back. */
export function eventText(text: string): string {
  const bytes = text.length * 3 <= mostBytes ? 0 : Buffer.byteLength(text)
  if (bytes <= mostBytes) return encoded(text)
  throw new RangeError(`A shared event has at most ${mostBytes} bytes: it has ${bytes}`)
}
