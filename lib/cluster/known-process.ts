/**
 * The last readings of a worker, kept in the primary. They stay in the totals when it hangs or ends, so that no counter
 * decreases. A worker sends only the routes that have changed.
 */
import { isObject } from '../base/object.ts'
import type { RouteReading } from '../metrics/metrics.ts'
import type { Since } from '../metrics/processes.ts'
import { difference, type Reading } from '../metrics/reading.ts'
import type { WorkerProcess } from './worker-process.ts'

/** A worker whose readings are collected. */
export type ReadWorker = Pick<WorkerProcess, 'number' | 'pid' | 'peer' | 'serving'>

/** The last known state of a worker. */
export class KnownProcess {
  readonly worker: ReadWorker
  readonly #routes = new Map<string, RouteReading>()
  #latest: Reading | undefined
  /** The counters when the bench window began; undefined if the worker started after that. */
  #windowStart: Reading | undefined

  constructor(worker: ReadWorker) {
    this.worker = worker
  }

  /**
   * Takes a reading with the routes that changed.
   * @throws TypeError when it is damaged; nothing is changed
   */
  take(changes: Reading): void {
    const routes: unknown = isObject(changes) ? changes.routes : undefined
    const isRoute = (route: unknown): boolean => isObject(route) && typeof route['name'] === 'string'
    if (!Array.isArray(routes) || !routes.every(isRoute)) throw new TypeError('its reading is damaged')
    this.#latest = changes
    for (const route of changes.routes) this.#routes.set(route.name, route)
  }

  /** Begins a bench window with the last reading. */
  beginWindow(): void {
    this.#windowStart = this.read('start')
  }

  /** The last reading; undefined before the first answer. */
  read(since: Since): Reading | undefined {
    if (this.#latest === undefined) return undefined
    const reading = { ...this.#latest, routes: [...this.#routes.values()] }
    return since === 'start' ? reading : difference(reading, this.#windowStart)
  }
}
