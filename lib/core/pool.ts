/**
 * A pool of workers with a queue: limits how many items run at once and how many wait, and refuses the rest. A worker
 * is a slot, not a thread; call `leave()` when a started item has ended.
 *
 * `enter()` starts the item before it returns if a worker is free. An item that ends before `start` returns uses
 * processor time and no worker, so a worker would always be free for it. With `turnMs` such items wait in the queue
 * too, once the event loop has run items for that long in one turn: in the queue they are counted and limited, and the
 * pool notices when their clients disconnect.
 *
 * Several pools may share one queue limit: each has its own queue, and their sum is bounded. With `maxWaitMs` no item
 * waits longer: under overload a late response is worth less than an early refusal.
 *
 * An item that waits for its client may release its worker in the meantime: call `leave()`, then `resume()`.
 */
import { AsyncResource } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { unserved } from '../http/errors.ts'

/** One error for all refusals: recording a stack for each would cost more than the rest of the refusal. */
export const overloaded = unserved('Every worker is busy and the queue is full')

/** The error of a request that waited in the queue for the maximum time. */
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
  /** The maximum of running items; with 0 none ever runs. */
  readonly workers: number
  /** The maximum of waiting items, from 0; or a limit shared with other pools. */
  readonly queueSize: number | QueuePlaces
  /**
   * How long items are started in one turn of the event loop, in milliseconds, before further items wait; up to twice
   * as long after a long turn. Default: as long as workers are free. While workers are free and the first item has
   * waited no longer than this, the queue may grow beyond its size: a burst is not an overload.
   */
  readonly turnMs?: number
  /** Called when an item gets its worker: in `enter()`, in the `leave()` of another item, or later. Must not throw. */
  readonly start: (item: T) => void
  /** The percentage of busy workers, or of the queue in use, from which the pool is saturated, 1 to 100. */
  readonly alertPercent?: number
  /** The longest wait in the queue, in milliseconds; from half of it the pool is saturated. Default: no limit. */
  readonly maxWaitMs?: number
  /** Called with an item that has waited that long and will not be started. Must not throw. */
  readonly onExpired?: (item: T, waitedMs: number) => void
  /** Called when a queued item gets its worker, with the milliseconds that it waited. */
  readonly onWaited?: (waitedMs: number) => void
  /** Called when saturation begins and ends. */
  readonly onAlert?: (saturated: boolean) => void
}

/** The limit of a queue that several pools may share. */
export interface QueuePlaces {
  readonly size: number
  /** The number of waiting items. Only pools change it. */
  taken: number
}

/** When an item was queued, and in which asynchronous context: else it would run in that of the item before it. */
interface Waiting {
  readonly sinceMs: number
  readonly context: AsyncResource
}

/** How often the queue is checked for items that have waited too long, in milliseconds. */
const checkEveryMs = 100

/** How long a turn runs items of the queue, in milliseconds: short, since Node accepts one connection per turn. */
const queueSliceMs = 1

/**
 * Workers, queue and counters, which only the pool changes. Items are compared by identity; an item may be in the pool
 * only once.
 */
export class Pool<T> implements PoolCounts {
  readonly workers: number
  /** Items that hold a worker now. */
  busy = 0
  /** Items refused since the pool was created. */
  refused = 0
  /** Whether busy workers or queue have reached the alert percentage, or an item has waited for long. */
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
  readonly #afterPromises = (): void => process.nextTick(() => this.#runNext(performance.now()))
  #turnEndsAt: number
  /** Whether the turn in which `#turnEndsAt` was set is still running. */
  #isInTurn = false
  readonly #queue = new Map<T, Waiting>()
  /** Items that released their worker and need one again. */
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

  /** The maximum of waiting items, over all pools that share the limit. */
  get queueSize(): number {
    return this.#places.size
  }

  /** Items that wait now. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Starts the item, queues it, or refuses it when the queue is full. */
  enter(item: T): Entry {
    const isFree = this.busy < this.workers && this.#queue.size === 0 && this.#returning.length === 0
    if (isFree && this.#hasTime(performance.now())) {
      this.#begin(item)
      return 'started'
    }
    if (this.#places.taken < this.#places.size || this.#isBurst()) {
      this.#places.taken += 1
      this.#queue.set(item, { sinceMs: performance.now(), context: new AsyncResource('SVC_QUEUED') })
      if (this.#maxWaitMs < Infinity) this.#checks ??= setInterval(() => this.#check(), this.#checkEveryMs).unref()
      this.#updateAlert()
      return 'queued'
    }
    this.refused += 1
    return 'refused'
  }

  #begin(item: T, context?: AsyncResource): void {
    this.busy += 1
    this.#updateAlert()
    if (context === undefined) this.#start(item)
    else context.runInAsyncScope(this.#start, undefined, item)
  }

  /** Frees a worker: a returning item gets it, else the item that has waited longest. */
  leave(): void {
    this.busy -= 1
    if (this.#queue.size > 0 || this.#returning.length > 0) this.#handOver()
    this.#updateAlert()
  }

  /**
   * Gives a worker back to an item that released its own, ahead of the queue.
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

  /**
   * Gives free workers to returning items, then to the queue, until an item does not end at once: its promises must run
   * before the next item starts, which may reuse the memory of its reply. Returns whether more items wait.
   * @param nowMs the time at which the first item is started, if the turn has time left
   */
  #handOver(nowMs = performance.now()): boolean {
    if (this.#handingOver) return false // The loop below continues: items that end at once must not fill the stack.
    this.#handingOver = true
    let startMs = nowMs
    try {
      while (this.busy < this.workers) {
        const proceed = this.#returning.shift()
        if (proceed === undefined) break
        this.busy += 1
        proceed()
      }
      for (const [next, { sinceMs, context }] of this.#queue) {
        if (this.busy === this.workers || !this.#hasTime(startMs)) return false
        this.forget(next)
        if (startMs - sinceMs >= this.#maxWaitMs) {
          this.#expire(next, startMs - sinceMs)
          continue
        }
        this.#onWaited?.(startMs - sinceMs)
        const busyBefore = this.busy
        this.#begin(next, context)
        if (this.busy > busyBefore) return this.#queue.size > 0
        startMs = performance.now()
      }
      return false
    } finally {
      this.#handingOver = false
    }
  }

  /** Whether the queue is a burst: workers are free, and its first item has just arrived. It will soon be empty. */
  #isBurst(): boolean {
    if (this.busy === this.workers || this.#turnMs === Infinity) return false
    const [first] = this.#queue.values()
    return first === undefined || performance.now() - first.sinceMs < this.#turnMs
  }

  /** Whether items may still be started in this turn. Checks for a new turn only when the time of this one is over. */
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

  /** Called in the turn after `#beginTurn`: the queue gets a part of it, at least one item. */
  #runQueue(): void {
    this.#isInTurn = false
    if (this.#queue.size === 0 || this.busy === this.workers) return
    const nowMs = performance.now()
    this.#beginTurn(nowMs, queueSliceMs)
    this.#runNext(nowMs)
  }

  #runNext(nowMs: number): void {
    if (this.#handOver(nowMs)) queueMicrotask(this.#afterPromises)
    else if (this.#queue.size === 0) this.#turnEndsAt = performance.now() + this.#turnMs
  }

  /** Removes a waiting item from the queue. Returns false if it was not queued. */
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
    for (const [item, { sinceMs }] of this.#queue) {
      const waitedMs = nowMs - sinceMs
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
