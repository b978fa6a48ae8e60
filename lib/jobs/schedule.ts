/** The times at which a job runs: at a fixed interval, or at the local times of a cron expression. */
import { parseCron } from './cron.ts'

/** When a job runs. */
export interface Schedule {
  /** A normalized text by which a stored schedule is recognized: `every 900000` (in ms) or `cron 0 3 * * *`. */
  readonly spec: string
  /**
   * Returns the time of the next run, later than `nowMs`. All times are milliseconds since 1970.
   * @param previousMs the time for which the previous run was planned
   * @throws RangeError if a cron expression has no time after `nowMs`, such as NaN
   */
  next(nowMs: number, previousMs?: number): number
}

const unitsMs: ReadonlyMap<string, number> = new Map([['s', 1000], ['m', 60_000], ['h', 3_600_000], ['d', 86_400_000]])
const minMs = 1000
const maxMs = 366 * 86_400_000

/**
 * Returns the schedule of a fixed interval. With a previous time, the next time is a whole number of intervals after
 * it, so that late runs do not shift the later ones. A previous time more than one interval ahead is ignored: the clock
 * was set back.
 *
 * @param text a whole number and a unit (s, m, h or d) without a space, from `1s` to `366d`: `15m`
 * @throws RangeError for any other text; its message follows the word `every`
 */
export function everySchedule(text: string): Schedule {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  const intervalMs = Number(count) * (unitsMs.get(unit) ?? NaN)
  // Written so that NaN is refused.
  if (!(intervalMs >= minMs && intervalMs <= maxMs)) {
    const must = 'must be a whole number and a unit (s, m, h or d), from 1s to 366d, such as 15m'
    throw new RangeError(`${must}: it is ${JSON.stringify(text)}`)
  }
  return {
    spec: `every ${intervalMs}`,
    next(nowMs, previousMs = nowMs) {
      if (previousMs > nowMs + intervalMs) return nowMs + intervalMs
      const passed = Math.max(0, Math.floor((nowMs - previousMs) / intervalMs))
      return previousMs + (passed + 1) * intervalMs
    },
  }
}

/**
 * Returns the schedule of a cron expression. The previous time has no influence.
 *
 * @param text see `parseCron`
 * @throws RangeError for a wrong expression; its message follows the word `cron`
 */
export function cronSchedule(text: string): Schedule {
  const cron = parseCron(text)
  return { spec: `cron ${text.trim().replace(/\s+/g, ' ')}`, next: (nowMs) => cron.next(nowMs) }
}
