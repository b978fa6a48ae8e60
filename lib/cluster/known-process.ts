/**
 * What the primary knows of a worker: the figures that it told last, and what happened since the last sample of the
 * history. When the worker has ended, or does not answer, this is what counts for it.
 *
 * Surprise: a worker tells its routes in parts, those that changed. What is known of the others stays.
 */
import { noFigures, withoutWindow, type Figures, type Gauges, type Interval, type ProcessFigures } from '../metrics/figures.ts'
import type { RouteFigures } from '../metrics/route-metrics.ts'
import type { Changes, LastFigures } from './figures.ts'
import type { Peer } from './peer.ts'

/** Which worker it is. */
export interface WorkerIdentity {
  /** What it is called in the status, the metrics and the monitor. */
  readonly id: string
  readonly pid: number
}

/** The last known state of a worker. */
export class KnownProcess {
  /** This side of its channel. */
  readonly peer: Peer
  /** Whether it cannot be asked yet. */
  starting = true
  readonly #identity: WorkerIdentity
  readonly #routes = new Map<string, RouteFigures>()
  #figures: Figures = noFigures
  #intervals: Interval[] = []
  #lines: LastFigures['lines'] = []
  #requests: LastFigures['requests'] = []
  /** Whether what it tells is of a bench window that is over. */
  #isInOldWindow = false

  constructor(peer: Peer, identity: WorkerIdentity) {
    this.peer = peer
    this.#identity = identity
  }

  /** Takes what the worker has told, whether with all of its routes or with those that changed. */
  take(told: Figures): void {
    const figures = this.#isInOldWindow ? withoutWindow(told) : told
    this.#figures = figures
    for (const route of figures.requests.routes) this.#routes.set(route.name, route)
  }

  /** What happened since this was last called, so far as it was told: nothing, or more than one interval. */
  giveIntervals(): Interval[] {
    const intervals = this.#intervals
    this.#intervals = []
    return intervals
  }

  /** Takes what the worker tells for the history. */
  takeChanges({ figures, interval }: Changes): void {
    this.take(figures)
    this.#intervals.push(interval)
  }

  /** Takes all that the worker tells when it ends. */
  takeLast(told: LastFigures): void {
    this.takeChanges(told)
    this.#lines = told.lines
    this.#requests = told.requests
  }

  /** The last lines and requests, where the worker told them at its end. */
  get last(): Pick<LastFigures, 'lines' | 'requests'> {
    return { lines: this.#lines, requests: this.#requests }
  }

  /** Forgets the bench window. What the worker tells is of the old one until it has begun a new one itself. */
  endWindow(): void {
    this.#isInOldWindow = true
    this.take(this.figures)
  }

  /** From now on the worker tells of the new window. */
  beginWindow(): void {
    this.#isInOldWindow = false
  }

  get id(): string {
    return this.#identity.id
  }

  /** What it is called in a log line. */
  get name(): string {
    return `worker ${this.#identity.id} (process ${this.#identity.pid})`
  }

  /** What it told of the moment when it was asked last. */
  get gauges(): Gauges {
    return this.#figures.now
  }

  /** All that is known. */
  get figures(): Figures {
    return { ...this.#figures, requests: { ...this.#figures.requests, routes: [...this.#routes.values()] } }
  }

  /** The same, and which worker it is. */
  figuresOf(responding: boolean): ProcessFigures {
    return { ...this.figures, ...this.#identity, role: 'worker', responding, starting: this.starting }
  }
}
