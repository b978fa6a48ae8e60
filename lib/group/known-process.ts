/**
 * The readings of the workers in the primary: the last one of each, and the sum of those that have ended. They stay in
 * the totals when a worker hangs or ends, so that no counter decreases. A worker sends only the routes that have
 * changed.
 */
import { sumOfGroups } from '../log/error-groups.ts'
import { keptLines } from '../log/recent-lines.ts'
import { keptRequests, type RouteReading } from '../metrics/metrics.ts'
import type { Since } from '../metrics/processes.ts'
import { boundRoutes, difference, sumOf, withoutGauges, type Reading } from '../metrics/reading.ts'
import type { Peer } from './peer.ts'
import type { LastReading } from './readings.ts'

/** Identifies a worker. */
export interface WorkerIdentity {
  /** Its name in the status, the metrics and the monitor. */
  readonly id: string
  readonly pid: number
}

const nothing: Omit<LastReading, 'changes'> = { lines: [], requests: [], errors: [] }

/** The last known state of a worker. */
export class KnownProcess {
  /** This side of its channel. */
  readonly peer: Peer
  readonly identity: WorkerIdentity
  /** Whether it is still loading the application and cannot be asked. */
  starting = true
  /** The last lines, requests and errors, sent at the end of the worker. */
  last: Omit<LastReading, 'changes'> = nothing
  readonly #routes = new Map<string, RouteReading>()
  #latest: Reading | undefined
  /** The counters when the bench window began; undefined if the worker started in it. */
  #windowStart: Reading | undefined

  constructor(peer: Peer, identity: WorkerIdentity) {
    this.peer = peer
    this.identity = identity
  }

  /** Takes a reading with the routes that changed. */
  take(changes: Reading): void {
    this.#latest = changes
    for (const route of changes.routes) this.#routes.set(route.name, route)
  }

  /** Takes the last reading, with the last lines, requests and errors. */
  takeLast({ changes, ...last }: LastReading): void {
    this.take(changes)
    this.last = last
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
  last: KnownProcess['last'] = nothing
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
    const { lines, requests, errors } = worker.last
    this.last = {
      lines: inOrder([this.last.lines, lines], keptLines),
      requests: inOrder([this.last.requests, requests], keptRequests),
      errors: sumOfGroups([this.last.errors, errors]),
    }
  }

  /** Forgets their errors that were not seen after a time, in milliseconds since 1970. */
  clearErrors(beforeMs = Infinity): void {
    this.last = { ...this.last, errors: this.last.errors.filter(({ last_at: lastMs }) => lastMs > beforeMs) }
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

/** Merges lists by time, oldest first, and keeps the last `most`. At one time, the order of the lists stays. */
export function inOrder<Entry extends { readonly time: number }>(
  lists: readonly (readonly Entry[])[],
  most: number,
): Entry[] {
  return lists
    .flat()
    .sort((a, b) => a.time - b.time)
    .slice(-most)
}
