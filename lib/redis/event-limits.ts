/**
 * How the limits of a channel or queue are given to Redis, and what is too large for it.
 */
import type { SourceLimits } from '../events/broker.ts'
import { encoded } from './text.ts'

/** What scripts take: the most events, their age in microseconds, the life of an unused source in milliseconds. */
export type LimitArguments = readonly [most: number, ageUs: number, lifeMs: number]

const hourMs = 3_600_000
/** A sweep comes in between, so that what gets too old is counted. */
const sweepMs = 120_000
/** What is kept for longer is kept for good. */
const longestMs = 100 * 365 * 24 * hourMs
/** The client reads replies of 64 MiB. */
const mostBytes = 16 * 2 ** 20

/**
 * The limits for a script. A source that nobody uses lives once to twice as long as its events, and for an hour at
 * least: it is renewed when half of its life is over, so that not every use is a write.
 */
export function limitArguments({ maxEvents, maxAgeMs }: SourceLimits): LimitArguments {
  const ageMs = Math.min(maxAgeMs, longestMs)
  return [maxEvents, Math.max(1, Math.round(ageMs * 1000)), lifeOf(ageMs)]
}

/** Milliseconds that a source lives whose events are kept for so many. */
export function lifeOf(ageMs: number): number {
  return 2 * (Math.ceil(Math.max(ageMs, hourMs)) + sweepMs)
}

/** An event's text as it is sent. Throws RangeError where it is over 16 MiB: nobody could read it back. */
export function eventText(text: string): string {
  const bytes = text.length * 3 <= mostBytes ? 0 : Buffer.byteLength(text)
  if (bytes <= mostBytes) return encoded(text)
  throw new RangeError(`An event has at most ${mostBytes} bytes where it is shared: it has ${bytes}`)
}
