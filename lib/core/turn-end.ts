/**
 * The end of a turn of the event loop: the requests that have arrived in it are handled there, and answers that took a
 * promise leave together.
 *
 * Node announces a request within a callback of its parser. Handled there, its body has not arrived yet and would be
 * read by events; at the end of the turn a small one has, and is read at once. An answer wakes the process that reads
 * it, often a proxy on the same machine. With the work for another request between two writes the reader is asleep
 * again each time, and waking it takes longer than making a small answer. docs/decisions/turn-end.md has the figures.
 */
import { performance } from 'node:perf_hooks'

/** Answers that have been ready for this many milliseconds are sent before another action begins. */
const holdMs = 0.25

/** The requests and answers of one server. */
export class TurnEnd<Request> {
  readonly #handle: (request: Request) => void
  readonly #onHeld = (): void => {
    this.#isTimed = false
    this.sendAll()
  }
  /** The request that arrived last. */
  #last: Request | undefined = undefined
  /** What sends the answers that are ready. */
  #ready: (() => void)[] = []
  /** When the first of them was ready, by `performance.now()`. */
  #sinceMs = 0
  /** Whether the end of a turn sends what is ready. */
  #isTimed = false

  /** @param handle handles one request; it must not throw */
  constructor(handle: (request: Request) => void) {
    this.#handle = handle
  }

  /**
   * Adds a request. Each has an event of its own at the end of the turn: so it keeps the asynchronous context in which
   * it arrived, and the promises of the one before have been run.
   */
  add(request: Request): void {
    this.#last = request
    setImmediate(this.#handle, request)
  }

  /**
   * Holds the answer to a request back until the request that arrived last has its own, or until the turn ends.
   * @param send sends it; it must not throw
   */
  hold(request: Request, send: () => void): void {
    const isFirst = this.#ready.push(send) === 1
    if (request === this.#last) return this.sendAll()
    if (!isFirst) return
    this.#sinceMs = performance.now()
    if (this.#isTimed) return
    this.#isTimed = true
    setImmediate(this.#onHeld)
  }

  /** Call before an action: it may take long, so answers that have waited for a while are sent. */
  beforeAction(): void {
    if (this.#ready.length > 0 && performance.now() - this.#sinceMs > holdMs) this.sendAll()
  }

  /** Sends what is ready. */
  sendAll(): void {
    const ready = this.#ready
    this.#ready = []
    for (const send of ready) send()
  }
}
