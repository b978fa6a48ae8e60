/**
 * Limits the guesses of a second factor by somebody who knows the password, from however many addresses: within ten
 * minutes, from the 4th wrong code of the account each is answered a second late, and after 10 the account has no more
 * attempts. So somebody who tries for a whole day finds a code with a chance of less than 1 %.
 *
 * An attempt counts as wrong until it has succeeded, as in `throttle.ts`.
 *
 * It also remembers the tickets that were used, so that each is good once.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { MaybePromise } from '../base/maybe-promise.ts'
import type { ThrottleOptions } from './throttle.ts'

/** Counts the wrong codes of the account, and the used tickets. */
export interface CodeThrottle {
  /**
   * Call before checking a code. Returns 0 if allowed, else the seconds after which to retry.
   * @param isKnown whether the request has a valid cookie, and so is never refused
   */
  begin(isKnown: boolean): MaybePromise<number>
  /** Call after a right code: forgets the wrong ones. */
  succeeded(): void
  /** Call after a wrong code. Resolves when to answer. */
  failed(): Promise<void>
  /** Uses a ticket. Returns false if it was used before. */
  useTicket(id: string): MaybePromise<boolean>
}

const windowMs = 600_000
const freeFailures = 3
const maxFailures = 10
const delayMs = 1000
/** How long a used ticket is remembered: longer than one is valid. */
const rememberedMs = 600_000
/** The maximum of remembered tickets, of which only somebody who knows the password can get more. */
const maxTickets = 10_000

/** Makes a throttle. */
export function createCodeThrottle(options: ThrottleOptions = {}): CodeThrottle {
  const { now = () => performance.now(), wait = delay } = options
  /** The times of the attempts, oldest first. */
  let attempts: number[] = []
  /** The times when tickets were used, oldest first, by their ids. */
  const tickets = new Map<string, number>()

  function recent(): number[] {
    const nowMs = now()
    return attempts.filter((time) => nowMs - time < windowMs)
  }

  return {
    begin(isKnown) {
      attempts = recent()
      const oldest = attempts.at(-maxFailures)
      if (!isKnown && oldest !== undefined) return Math.ceil((oldest + windowMs - now()) / 1000)
      attempts.push(now())
      return 0
    },
    succeeded() {
      attempts = []
    },
    async failed() {
      if (recent().length > freeFailures) await wait(delayMs)
    },
    useTicket(id) {
      const nowMs = now()
      const isRemembered = (time: number): boolean => nowMs - time < rememberedMs
      if (isRemembered(tickets.get(id) ?? -Infinity)) return false
      for (const [used, time] of tickets) {
        if (isRemembered(time) && tickets.size < maxTickets) break
        tickets.delete(used)
      }
      tickets.set(id, nowMs)
      return true
    },
  }
}
