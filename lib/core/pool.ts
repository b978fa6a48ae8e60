/**
 * A pool of workers with a queue: how many items run at once, how many may wait, and which are refused. A worker is a
 * slot, not a thread; call `leave()` when an item that was started has ended.
 *
 * `enter()` starts the item before it returns when a worker is free. An item that ends before `start` returns uses
 * processor time and no worker, so a worker would always be free for it. With `turnMs` such items wait in the queue
 * too, once the event loop has run items for that long in one turn: in the queue they are counted and limited, and the
 * pool learns when their clients disconnect.
 *
 * Several pools may share the places of one queue: each has its own queue, and the sum of them is bounded. With
 * `maxWaitMs` no item waits longer: under overload a late answer is worth less than an early refusal.
 *
 * An item that waits for its client may give its worker back in the meantime: call `leave()`, then `resume()`.
 */
import { performance } from 'node:perf_hooks'
import { unserved } from '../http/errors.ts'

/** One error for all refusals: to record a new stack for each would cost more than the rest of the refusal. */
export const overloaded = unserved('Every worker is busy and the queue is full')

/** The error of a request that waited in the queue as long as any may. */
export const waitedTooLong = unserved('No worker was free in time')

/** The result of `enter`. */
export type Entry = 'started' | 'queued' | 'refused'

/** The state of a pool. */
export interface PoolCounts {
  readonly workers: number
  readonly queueSize: number
  readonly busy: number
  readonly waiting: number
  readonly refused: number
}

/** The limits of a pool. */
export interface PoolOptions<T> {
  /** The most items that run at once; with 0 none ever runs. */
  readonly workers: number
  /** The most items that wait, 0 and up; or places that are shared with other pools. */
  readonly queueSize: number | QueuePlaces
  /**
   * For how long items are started in one turn of the event loop, in milliseconds, before the next ones wait; up to
   * twice as long when the turn before was long. Unless given, as long as workers are free. While workers are free and
   * the first item has waited no longer than this, the queue may grow beyond its size: a burst is no overload.
   */
  readonly turnMs?: number
  /** Called when an item gets its worker: in `enter()`, in the `leave()` of another item, or later. Must not throw. */
  readonly start: (item: T) => void
  /** The percentage of busy workers, or of taken places of the queue, 1 to 100, from which the pool is saturated. */
  readonly alertPercent?: number
  /** The longest wait in the queue, in milliseconds; from half of it on the pool is saturated. Default: no limit. */
  readonly maxWaitMs?: number
  /** Called with an item that has waited for that long, and is not started any more. Must not throw. */
  readonly onExpired?: (item: T, waitedMs: number) => void
  /** Called when an item that was queued gets its worker, with the milliseconds that it waited. */
  readonly onWaited?: (waitedMs: number) => void
  /** Called when saturation begins and when it ends. */
  readonly onAlert?: (saturated: boolean) => void
}

/** The places of a queue. */
export interface QueuePlaces {
  readonly size: number
  /** How many are taken now. Only pools change it. */
  taken: number
}

/** How often the queue is checked for items that have waited too long, in milliseconds. */
const checkEveryMs = 100

/** How long a turn runs items of the queue, in milliseconds: short, since Node accepts one connection in a turn. */
const pieceMs = 1

/**
 * Workers, queue and counters, which only the pool changes. Items are compared by identity; an item may be in the pool
 * once.
 */
export class Pool<T> implements PoolCounts {
  readonly workers: number
  /** Items that hold a worker now. */
  busy = 0
  /** Items refused since the pool was made. */
  refused = 0
  /** Whether the busy workers or the queue have reached the alert share, or an item has waited for long. */
  alert = false
  readonly #places: QueuePlaces
  readonly #start: (item: T) => void
  readonly #alertAt: number
  readonly #queueAlertAt: number
  readonly #maxWaitMs: number
  readonly #onExpired: ((item: T, waitedMs: number) => void) | undefined
  readonly #onAlert: ((saturated: boolean) => void) | undefined
  readonly #onWaited: ((waitedMs: number) => void) | undefined
  readonly #turnMs: number
  readonly #onNextTurn = (): void => this.#runQueue()
  #turnEndsAt: number
  /** Whether the turn in which `#turnEndsAt` was set still runs. */
  #isInTurn = false
  /** The waiting items, and since when they wait. */
  readonly #queue = new Map<T, number>()
  /** Items that had a worker, gave it back, and want one again. */
  readonly #returning: (() => void)[] = []
  /** Runs while items wait. */
  #checks: NodeJS.Timeout | undefined = undefined
  #hasLongWait = false
  #handingOver = false

  constructor(options: PoolOptions<T>) {
    const { queueSize } = options
    this.#places = typeof queueSize === 'number' ? { size: queueSize, taken: 0 } : queueSize
    this.workers = options.workers
    this.#turnMs = options.turnMs ?? Infinity
    this.#turnEndsAt = options.turnMs === undefined ? Infinity : -Infinity
    this.#start = options.start
    const alertShare = (options.alertPercent ?? 100) / 100
    this.#alertAt = Math.max(1, Math.ceil(options.workers * alertShare))
    this.#queueAlertAt = Math.max(1, Math.ceil(this.#places.size * alertShare))
    this.#maxWaitMs = options.maxWaitMs ?? Infinity
    this.#onExpired = options.onExpired
    this.#onWaited = options.onWaited
    this.#onAlert = options.onAlert
  }

  /** The most items that may wait, in all pools that share the places. */
  get queueSize(): number {
    return this.#places.size
  }

  /** Items that wait now. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Starts the item, or queues it, or refuses it when the queue is full. */
  enter(item: T): Entry {
    const isFree = this.busy < this.workers && this.#queue.size === 0 && this.#returning.length === 0
    if (isFree && this.#hasTime(performance.now())) {
      this.#begin(item)
      return 'started'
    }
    if (this.#places.taken < this.#places.size || this.#isBurst()) {
      this.#places.taken += 1
      this.#queue.set(item, performance.now())
      if (this.#maxWaitMs < Infinity) this.#checks ??= setInterval(() => this.#check(), this.#checkEveryMs).unref()
      this.#updateAlert()
      return 'queued'
    }
    this.refused += 1
    return 'refused'
  }

  #begin(item: T): void {
    this.busy += 1
    this.#updateAlert()
    this.#start(item)
  }

  /** Frees one worker: an item that returns gets it, else the one that has waited longest. */
  leave(): void {
    this.busy -= 1
    if (this.#queue.size > 0 || this.#returning.length > 0) this.#handOver()
    this.#updateAlert()
  }

  /**
   * Gives an item that has left its worker a worker again, before the items that wait in the queue.
   * @param proceed called later, with a worker, unless one is free now. Must not throw
   * @returns whether it has a worker now
   */
  resume(proceed: () => void): boolean {
    if (this.busy >= this.workers) {
      this.#returning.push(proceed)
      return false
    }
    this.busy += 1
    this.#updateAlert()
    return true
  }

  /** @param nowMs the time at which the first item is started, if there is time then */
  #handOver(nowMs = performance.now()): void {
    if (this.#handingOver) return // The loop below continues: items that end at once must not fill the stack.
    this.#handingOver = true
    let startMs = nowMs
    try {
      while (this.busy < this.workers) {
        const proceed = this.#returning.shift()
        if (proceed === undefined) break
        this.busy += 1
        proceed()
      }
      for (const [next, since] of this.#queue) {
        if (this.busy === this.workers || !this.#hasTime(startMs)) break
        this.forget(next)
        if (startMs - since >= this.#maxWaitMs) {
          this.#expire(next, startMs - since)
          continue
        }
        this.#onWaited?.(startMs - since)
        this.#begin(next)
        startMs = performance.now()
      }
    } finally {
      this.#handingOver = false
    }
  }

  /** Whether the queue is a burst: workers are free, and its first item has only just come. It will soon be empty. */
  #isBurst(): boolean {
    if (this.busy === this.workers || this.#turnMs === Infinity) return false
    const [since] = this.#queue.values()
    return since === undefined || performance.now() - since < this.#turnMs
  }

  /** Whether items may still be started in this turn. It checks for a new turn only when its time is over. */
  #hasTime(nowMs: number): boolean {
    if (nowMs < this.#turnEndsAt) return true
    if (this.#isInTurn) return false
    this.#beginTurn(performance.now(), this.#turnMs)
    return true
  }

  #beginTurn(nowMs: number, lengthMs: number): void {
    this.#isInTurn = true
    this.#turnEndsAt = nowMs + lengthMs
    setImmediate(this.#onNextTurn)
  }

  /** Called in the turn after the one of `#beginTurn`: the queue gets a part of it, one item at least. */
  #runQueue(): void {
    this.#isInTurn = false
    if (this.#queue.size === 0 || this.busy === this.workers) return
    const nowMs = performance.now()
    this.#beginTurn(nowMs, pieceMs)
    this.#handOver(nowMs)
    if (this.#queue.size === 0) this.#turnEndsAt = performance.now() + this.#turnMs
  }

  /** Removes a waiting item from the queue. Returns false when it was not there. */
  forget(item: T): boolean {
    if (!this.#queue.delete(item)) return false
    this.#places.taken -= 1
    if (this.alert) this.#updateAlert()
    return true
  }

  get #checkEveryMs(): number {
    return Math.min(checkEveryMs, Math.max(10, this.#maxWaitMs / 4))
  }

  /** Refuses the items that have waited too long, oldest first. */
  #check(): void {
    const nowMs = performance.now()
    this.#hasLongWait = false
    for (const [item, since] of this.#queue) {
      const waitedMs = nowMs - since
      this.#hasLongWait = waitedMs >= this.#maxWaitMs / 2
      if (waitedMs < this.#maxWaitMs) break
      this.forget(item)
      this.#expire(item, waitedMs)
    }
    if (this.#queue.size === 0) {
      this.#hasLongWait = false
      clearInterval(this.#checks)
      this.#checks = undefined
    }
    this.#updateAlert()
  }

  #expire(item: T, waitedMs: number): void {
    this.refused += 1
    this.#onExpired?.(item, waitedMs)
  }

  #updateAlert(): void {
    const waiting = this.#queue.size
    const saturated = this.busy >= this.#alertAt || waiting >= this.#queueAlertAt || (waiting > 0 && this.#hasLongWait)
    if (saturated === this.alert) return
    this.alert = saturated
    this.#onAlert?.(saturated)
  }
}
