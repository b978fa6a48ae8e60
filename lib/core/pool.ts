/**
 * A pool of workers with a queue: how many items may be worked on at once, how many may wait, and what is refused.
 * A worker is no thread but a permission; whoever was started gives it back with `leave()`.
 *
 * Surprise: `enter()` starts the item before it returns when a worker is free. An item that takes the processor's time
 * and not a worker's (it ends before `start` returns) would always find one free. With `turnMs` such items wait in the
 * queue too, once the event loop has been at it for that long in one turn: elsewhere nobody would count them, limit
 * them or notice that their clients have left.
 *
 * Several pools may share the places of one queue: then each has its own line, and what is bounded is their sum.
 */
import { performance } from 'node:perf_hooks'

/** What became of an item that asked to enter. */
export type Entry = 'started' | 'queued' | 'refused'

/** What can be asked of a pool at any time. */
export interface PoolCounts {
  readonly workers: number
  readonly queueSize: number
  readonly busy: number
  readonly waiting: number
  readonly refused: number
}

export interface PoolOptions<T> {
  /** The most items started at once; with 0 none is ever started. */
  readonly workers: number
  /** The most items that wait, 0 and up; or places that are shared with other pools. */
  readonly queueSize: number | QueuePlaces
  /**
   * How long items are started in one turn of the event loop, in milliseconds, before the next ones wait; up to twice
   * as long where a turn before it was long. Unless given, as long as there are workers. While workers are free and the
   * first that waits has waited no longer than this, the queue takes more than its size: a burst is no overload.
   */
  readonly turnMs?: number
  /** Called when an item gets its worker: in `enter()`, in the `leave()` of another, or later. It must not throw. */
  readonly start: (item: T) => void
  /** The share of busy workers, 1 to 100 percent, from which the pool is saturated. */
  readonly alertPercent?: number
  /** Told how long an item had waited in the queue, in milliseconds, when it gets its worker. */
  readonly onWaited?: (waitedMs: number) => void
  /** Told when saturation begins and when it ends. */
  readonly onAlert?: (saturated: boolean) => void
}

/** Places in a queue. */
export class QueuePlaces {
  readonly size: number
  /** How many are taken now. Only pools change it. */
  taken = 0

  /** @throws RangeError when the size is no whole number from 0 */
  constructor(size: number) {
    if (!Number.isSafeInteger(size) || size < 0) throw new RangeError(`A pool's queue size is 0 or more: it is ${size}`)
    this.size = size
  }
}

/**
 * How long a turn works off what waited for it, in milliseconds: short, since Node accepts one connection in a turn.
 */
const pieceMs = 1

/** Slots, queue and counters. Items are told apart by identity; one item enters once at a time. */
export class Pool<T> implements PoolCounts {
  readonly workers: number
  readonly #places: QueuePlaces
  readonly #start: (item: T) => void
  readonly #alertAt: number
  readonly #onAlert: ((saturated: boolean) => void) | undefined
  readonly #onWaited: ((waitedMs: number) => void) | undefined
  readonly #turnMs: number
  readonly #onNextTurn = (): void => this.#workOff()
  #turnEndsAt: number
  /** Whether the turn is not over in which `#turnEndsAt` was set. */
  #isInTurn = false
  /** The items that wait, and since when. */
  readonly #queue = new Map<T, number>()
  #busy = 0
  #refused = 0
  #alert = false
  #handingOver = false

  /** @throws RangeError when workers or queueSize is out of range */
  constructor(options: PoolOptions<T>) {
    if (!Number.isSafeInteger(options.workers) || options.workers < 0) {
      throw new RangeError(`A pool has 0 workers or more: workers is ${options.workers}`)
    }
    const { queueSize } = options
    this.#places = typeof queueSize === 'number' ? new QueuePlaces(queueSize) : queueSize
    this.workers = options.workers
    this.#turnMs = options.turnMs ?? Infinity
    this.#turnEndsAt = options.turnMs === undefined ? Infinity : -Infinity
    this.#start = options.start
    this.#alertAt = Math.max(1, Math.ceil((options.workers * (options.alertPercent ?? 100)) / 100))
    this.#onWaited = options.onWaited
    this.#onAlert = options.onAlert
  }

  /** The most items that wait, in all pools that share the queue. */
  get queueSize(): number {
    return this.#places.size
  }

  /** Items that hold a worker now. */
  get busy(): number {
    return this.#busy
  }

  /** Items that wait now. */
  get waiting(): number {
    return this.#queue.size
  }

  /** Items refused since the pool was made. */
  get refused(): number {
    return this.#refused
  }

  /** Whether the busy workers have reached the alert share. */
  get alert(): boolean {
    return this.#alert
  }

  /**
   * Starts the item, or queues it, or refuses it when the queue is full.
   * @param nowMs the time by `performance.now()`; whoever has just looked at the clock need not have it looked at again
   */
  enter(item: T, nowMs = performance.now()): Entry {
    if (this.#busy < this.workers && this.#queue.size === 0 && this.#hasTime(nowMs)) {
      this.#begin(item)
      return 'started'
    }
    if (this.#places.taken < this.#places.size || this.#isBurst()) {
      this.#places.taken += 1
      this.#queue.set(item, performance.now())
      return 'queued'
    }
    this.#refused += 1
    return 'refused'
  }

  #begin(item: T): void {
    this.#busy += 1
    if (this.#busy >= this.#alertAt && !this.#alert) this.#setAlert(true)
    this.#start(item)
  }

  /** Gives one worker back; the item that has waited longest gets it. */
  leave(): void {
    this.#busy -= 1
    if (this.#queue.size > 0) this.#handOver()
    if (this.#alert && this.#busy < this.#alertAt) this.#setAlert(false)
  }

  #handOver(): void {
    if (this.#handingOver) return // The loop below goes on with it: items that end at once must not fill the stack.
    this.#handingOver = true
    try {
      for (const [next, since] of this.#queue) {
        const nowMs = performance.now()
        if (this.#busy === this.workers || !this.#hasTime(nowMs)) break
        this.forget(next)
        this.#onWaited?.(nowMs - since)
        this.#begin(next)
      }
    } finally {
      this.#handingOver = false
    }
  }

  /** Whether what waits has only just come, and for the processor alone: it will soon be gone, however much it is. */
  #isBurst(): boolean {
    if (this.#busy === this.workers || this.#turnMs === Infinity) return false
    const [since] = this.#queue.values()
    return since === undefined || performance.now() - since < this.#turnMs
  }

  /** Whether items may still be started in this turn. That a new one has begun is looked at when the time is over. */
  #hasTime(nowMs: number): boolean {
    if (nowMs < this.#turnEndsAt) return true
    if (this.#isInTurn) return false
    this.#beginTurn(this.#turnMs)
    return true
  }

  #beginTurn(lengthMs: number): void {
    this.#isInTurn = true
    this.#turnEndsAt = performance.now() + lengthMs
    setImmediate(this.#onNextTurn)
  }

  /** The turn is over in which `#beginTurn` was called: what waits gets a piece of this one. */
  #workOff(): void {
    this.#isInTurn = false
    if (this.#queue.size === 0 || this.#busy === this.workers) return
    this.#beginTurn(pieceMs)
    this.#handOver()
    if (this.#queue.size === 0) this.#turnEndsAt = performance.now() + this.#turnMs
  }

  /** Takes a waiting item out of the queue. Returns false when it was not waiting. */
  forget(item: T): boolean {
    if (!this.#queue.delete(item)) return false
    this.#places.taken -= 1
    return true
  }

  #setAlert(saturated: boolean): void {
    this.#alert = saturated
    this.#onAlert?.(saturated)
  }
}
