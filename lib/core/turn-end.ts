/**
 * The end of an event loop turn: requests that arrived in the turn are handled there, and asynchronous answers are sent
 * together.
 *
 * Node announces a request in a parser callback. At that time its body has not arrived yet and would be read by events;
 * at the end of the turn a small body has arrived and is read at once. An answer wakes the process that reads it, often
 * a proxy on the same machine. With the work for another request between two writes, the reader is asleep again each
 * time, and waking it takes longer than producing a small answer. See docs/decisions/turn-end.md for the figures.
 */
import { performance } from 'node:perf_hooks'

/** Answers ready for longer than this, in milliseconds, are sent before another action begins. */
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
  /** The functions that send the ready answers. */
  #ready: (() => void)[] = []
  /** When the first of them became ready, by `performance.now()`. */
  #sinceMs = 0
  /** Whether the ready answers are already scheduled for the end of the turn. */
  #isTimed = false

  /** @param handle handles one request; it must not throw */
  constructor(handle: (request: Request) => void) {
    this.#handle = handle
  }

  /**
   * Adds a request. Each has its own event at the end of the turn, so it keeps the asynchronous context in which it
   * arrived, and the promises of the previous request have run.
   */
  add(request: Request): void {
    this.#last = request
    setImmediate(this.#handle, request)
  }

  /**
   * Holds the answer to a request until the request that arrived last has its own, or until the turn ends.
   * @param send sends it; must not throw
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

  /** Call before an action, which may take long: sends answers that have waited for a while. */
  beforeAction(): void {
    if (this.#ready.length > 0 && performance.now() - this.#sinceMs > holdMs) this.sendAll()
  }

  /** Sends the ready answers. */
  sendAll(): void {
    const ready = this.#ready
    this.#ready = []
    for (const send of ready) send()
  }
}
