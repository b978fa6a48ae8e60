/**
 * Slows down whoever guesses passwords. Failed logins of one address within a minute: from the 11th the answer comes a
 * second later, and past 100 there is no attempt any more. At most 50 answers wait at the same time; past that a failed
 * login is told at once to come back later. From 100 failures of all addresses on, each failed login is answered a
 * second later, and while 50 wait there is no attempt: else many addresses would guess as fast as one is not allowed
 * to.
 *
 * IPv6 addresses count by their first 64 bits, since one client has all that follow.
 *
 * Surprise: an attempt counts as failed from its beginning until it turns out right. Else a thousand at the same time
 * would all begin before the first has failed.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { networkOf } from '../http/ip-address.ts'
import type { MaybePromise } from '../base/maybe-promise.ts'

/** What a test may want to hold. */
export interface ThrottleOptions {
  /** Milliseconds from any point on; a clock that never goes back unless given. */
  readonly now?: () => number
  /** Waits; a timer unless given. */
  readonly wait?: (milliseconds: number) => Promise<unknown>
}

export interface LoginThrottle {
  /**
   * Asks before a password is looked at. Answers 0: go on; or the seconds after which to try again.
   * @param isKnown whether who asks has shown a cookie that counts, and so may always go on; false unless given
   */
  begin(address: string, isKnown?: boolean): MaybePromise<number>
  /** The password was right: the address begins anew. */
  succeeded(address: string): void
  /** The password was wrong. Resolves when it may be said: with 0, or with the seconds after which to try again. */
  failed(address: string): Promise<number>
}

/** A throttle of this process. */
export interface LocalThrottle extends LoginThrottle {
  begin(address: string, isKnown?: boolean): number
}

const windowMs = 60_000
const freeFailures = 10
const maxFailures = 100
/** Failures of all addresses, from which on each is answered later. */
const freeFailuresOfAll = 100
const delayMs = 1000
const maxWaiting = 50
/** Addresses that are remembered; past that the one whose last attempt is oldest is forgotten. */
const maxAddresses = 10_000

/** Makes a throttle. Its memory is bounded: 10,000 addresses with 100 times each. */
export function createLoginThrottle({ now = monotonic, wait = delay }: ThrottleOptions = {}): LocalThrottle {
  /** The times of each network's attempts, oldest first; the network with the latest attempt last. */
  const attempts = new Map<string, number[]>()
  /** The latest attempts of all, oldest first, no more than are asked for. */
  let ofAll: { readonly network: string; readonly ms: number }[] = []
  let waiting = 0

  function isUnderAttack(nowMs: number): boolean {
    const [oldest] = ofAll
    return ofAll.length >= freeFailuresOfAll && oldest !== undefined && nowMs - oldest.ms < windowMs
  }

  function recent(network: string, nowMs: number): number[] {
    return (attempts.get(network) ?? []).filter((time) => nowMs - time < windowMs)
  }

  return {
    begin(address, isKnown = false) {
      const network = networkOf(address)
      const nowMs = now()
      const times = recent(network, nowMs)
      const [oldest] = times
      if (!isKnown && oldest !== undefined && times.length >= maxFailures) {
        return Math.ceil((oldest + windowMs - nowMs) / 1000)
      }
      if (!isKnown && waiting >= maxWaiting && isUnderAttack(nowMs)) return delayMs / 1000
      times.push(nowMs)
      attempts.delete(network)
      attempts.set(network, times)
      if (attempts.size > maxAddresses) forgetOldest(attempts)
      ofAll.push({ network, ms: nowMs })
      if (ofAll.length > freeFailuresOfAll) ofAll.shift()
      return 0
    },
    succeeded(address) {
      const network = networkOf(address)
      attempts.delete(network)
      ofAll = ofAll.filter((attempt) => attempt.network !== network)
    },
    async failed(address) {
      const nowMs = now()
      if (recent(networkOf(address), nowMs).length <= freeFailures && !isUnderAttack(nowMs)) return 0
      if (waiting >= maxWaiting) return delayMs / 1000
      waiting += 1
      try {
        await wait(delayMs)
      } finally {
        waiting -= 1
      }
      return 0
    },
  }
}

function monotonic(): number {
  return performance.now()
}

function forgetOldest(attempts: Map<string, number[]>): void {
  const [oldest] = attempts.keys()
  if (oldest !== undefined) attempts.delete(oldest)
}
