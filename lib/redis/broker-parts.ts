/**
 * The parts that the channels and the queues of the broker over Redis share: calls that are under way, and the limits
 * of a source as its scripts take them.
 */
import { randomBytes } from 'node:crypto'
import type { SourceLimits } from '../events/broker.ts'
import type { Redis } from './client.ts'
import { encoded } from './reply.ts'

export interface RedisBrokerOptions {
  /** It stays open when the broker is closed. */
  readonly redis: Redis
  /** The prefix of every key, such as `svc:`. */
  readonly prefix: string
  /** The prefix of every channel of PUBLISH. It differs for each database, since PUBLISH ignores databases. */
  readonly place: string
  /**
   * Called when events were lost, and each time a server that is connected refuses a command, for example for want of
   * memory.
   */
  readonly onProblem: (message: string) => void
}

/** The parts shared by channels and queues. */
export interface BrokerParts extends RedisBrokerOptions {
  readonly calls: Calls
}

/**
 * The calls of this process that are not answered yet. The script of each call publishes its tag along with the event,
 * so the process recognizes its own events and holds them back until the call has been answered.
 */
export class Calls {
  /** Random, so that no two processes have the same. */
  readonly process = randomBytes(9).toString('base64url')
  readonly #underWay = new Map<string, Promise<unknown>>()
  #count = 0

  /** Starts a call. @param work receives the tag of the call, which has no spaces */
  run<T>(work: (tag: string) => Promise<T>): Promise<T> {
    const tag = `${this.process}.${++this.#count}`
    const call = work(tag)
    const over = (): void => void this.#underWay.delete(tag)
    this.#underWay.set(tag, call)
    call.then(over, over)
    return call
  }

  /**
   * Calls `go` once the call with this tag has been answered and its caller has continued.
   * @returns false when no such call is under way here; `go` is not called then
   */
  waitFor(tag: string, go: () => void): boolean {
    const call = this.#underWay.get(tag)
    if (call === undefined) return false
    const later = (): void => void setImmediate(go)
    call.then(later, later)
    return true
  }

  /** Resolves when no call is under way, including calls that the callers of these make next. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) {
      await Promise.allSettled(this.#underWay.values())
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

/** The limits of a source as scripts take them. */
type LimitArguments = readonly [maxEvents: number, ageUs: number, lifeMs: number]

const hourMs = 3_600_000
/** Longer than the time between two sweeps, so that a sweep still counts the events that became too old. */
const sweepMs = 120_000
/** Events that may be older than this are kept for ever. */
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
 * left, so that most uses write nothing: a source that nobody uses stays for half of it at least.
 * @param ageMs how long its events are kept
 */
export function lifeOf(ageMs: number): number {
  return 2 * (Math.ceil(Math.max(ageMs, hourMs)) + sweepMs)
}

/** Encodes the text of an event. Throws RangeError above 16 MiB, which could not be read back. */
export function eventText(text: string): string {
  const bytes = text.length * 3 <= mostBytes ? 0 : Buffer.byteLength(text)
  if (bytes <= mostBytes) return encoded(text)
  throw new RangeError(`An event has at most ${mostBytes} bytes where it is shared: it has ${bytes}`)
}
