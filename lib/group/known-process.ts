/**
 * The readings of the workers in the primary: the last one of each, and the sum of those that have ended. They stay in
 * the totals when a worker hangs or ends, so that no counter decreases. A worker sends only the routes that have
 * changed.
 */
import type { RouteReading } from '../metrics/metrics.ts'
import type { Since } from '../metrics/processes.ts'
import { boundRoutes, difference, sumOf, withoutGauges, type Reading } from '../metrics/reading.ts'
import type { WorkerProcess } from './worker-process.ts'

/** A worker whose readings are taken. */
export type ReadWorker = Pick<WorkerProcess, 'number' | 'pid' | 'peer' | 'serving'>

/** The last known state of a worker. */
export class KnownProcess {
  readonly worker: ReadWorker
  readonly #routes = new Map<string, RouteReading>()
  #latest: Reading | undefined
  /** The counters when the bench window began; undefined if the worker started in it. */
  #windowStart: Reading | undefined

  constructor(worker: ReadWorker) {
    this.worker = worker
  }

  /** Takes a reading with the routes that changed. */
  take(changes: Reading): void {
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

/** The sum of the workers that ended. Requests that a worker had not reported before are lost. */
export class EndedProcesses {
  count = 0
  readonly #readings: Partial<Record<Since, Reading>> = {}

  /** Adds a worker. */
  add(worker: KnownProcess): void {
    this.count += 1
    for (const since of ['start', 'window'] as const) {
      const reading = worker.read(since)
      if (reading === undefined) continue
      const earlier = this.#readings[since]
      const ended = withoutGauges(reading)
      this.#readings[since] = boundRoutes(earlier === undefined ? ended : sumOf([earlier, ended]))
    }
  }

  /** Begins a bench window. */
  beginWindow(): void {
    delete this.#readings.window
  }

  /** The sum of their last readings; undefined if there is none. */
  read(since: Since): Reading | undefined {
    return this.#readings[since]
  }
}
