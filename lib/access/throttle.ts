/**
 * Slows down password guessing. Within a minute, from the 11th failed login of an address each is answered a second
 * late, and after 100 the address has no more attempts. At most 50 answers are delayed at the same time; beyond that a
 * failed login gets an immediate answer to retry later. After 100 failures of all addresses, each failed login is
 * answered a second late, and while 50 answers are delayed there are no attempts: otherwise many addresses together
 * could guess faster than one.
 *
 * IPv6 addresses count by their first 64 bits, since one client usually has a whole /64.
 *
 * An attempt counts as failed until it has succeeded. Otherwise a thousand concurrent attempts could all begin before
 * the first has failed.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { MaybePromise } from '../base/maybe-promise.ts'
import { networkOf } from '../http/ip-address.ts'

/** Time, which tests replace. */
export interface ThrottleOptions {
  /** Milliseconds; default: `performance.now()`. */
  readonly now?: () => number
  /** Waits; default: a timer. */
  readonly wait?: (milliseconds: number) => Promise<unknown>
}

/** Counts failed logins. */
export interface LoginThrottle {
  /**
   * Call before checking a password. Returns 0 if allowed, else the seconds after which to retry.
   * @param isKnown whether the request has a valid cookie, and so is never refused; default: false
   */
  begin(address: string, isKnown?: boolean): MaybePromise<number>
  /** Call after a correct password: forgets the failures of the address. */
  succeeded(address: string): void
  /** Call after a wrong password. Resolves when to answer, with 0 or the seconds after which to retry. */
  failed(address: string): Promise<number>
}

const windowMs = 60_000
const freeFailures = 10
const maxFailures = 100
/** From this number of failures, over all addresses, each failure is answered late. */
const freeFailuresOfAll = 100
const delayMs = 1000
const maxWaiting = 50
/** The maximum of remembered addresses; beyond it, the address with the oldest last attempt is forgotten. */
const maxAddresses = 10_000

/** Makes a throttle. It remembers at most 10,000 addresses with 100 attempts each. */
export function createLoginThrottle({ now = () => performance.now(), wait = delay }: ThrottleOptions = {}) {
  /** The times of each network's attempts, oldest first; the network with the newest attempt is the last entry. */
  const attempts = new Map<string, number[]>()
  /** The last attempts of all networks, oldest first; as many as `isUnderAttack` needs. */
  let recentOfAll: { readonly network: string; readonly ms: number }[] = []
  let waiting = 0

  function isUnderAttack(nowMs: number): boolean {
    const [oldest] = recentOfAll
    return recentOfAll.length >= freeFailuresOfAll && oldest !== undefined && nowMs - oldest.ms < windowMs
  }

  function recent(network: string, nowMs: number): number[] {
    return (attempts.get(network) ?? []).filter((time) => nowMs - time < windowMs)
  }

  return {
    begin(address: string, isKnown = false): number {
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
      recentOfAll.push({ network, ms: nowMs })
      if (recentOfAll.length > freeFailuresOfAll) recentOfAll.shift()
      return 0
    },
    succeeded(address: string): void {
      const network = networkOf(address)
      attempts.delete(network)
      recentOfAll = recentOfAll.filter((attempt) => attempt.network !== network)
    },
    async failed(address: string): Promise<number> {
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
  } satisfies LoginThrottle
}

function forgetOldest(attempts: Map<string, number[]>): void {
  const [oldest] = attempts.keys()
  if (oldest !== undefined) attempts.delete(oldest)
}
