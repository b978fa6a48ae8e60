/**
 * The sending end of a reply that stays open: a stream of events or a WebSocket. Code with more to send to the client,
 * such as presence, gets it through the context, before or after the reply has begun.
 */
import type { CoreContext } from '../http/context.ts'

/** Called when the reply turns out to be one that stays open. */
type OnOpen = (end: ReplySender) => void

const ends = new WeakMap<CoreContext, ReplySender>()
const waiting = new WeakMap<CoreContext, OnOpen[]>()

/** The sending end of one open reply. */
export class ReplySender {
  /** Sends JSON on one line: to a stream as an event of this name, to a WebSocket as `{"event", "data"}`. */
  readonly send: (event: string, json: string) => void
  /**
   * Ends the reply so that a live client reconnects at once; a dead one does not. Undefined if the connection itself
   * detects dead clients.
   */
  readonly renew: (() => void) | undefined
  readonly #onClose: (() => void)[] = []

  /** Notifies the code that waits for it. */
  constructor(ctx: CoreContext, send: ReplySender['send'], renew?: () => void) {
    this.send = send
    this.renew = renew
    ends.set(ctx, this)
    for (const onOpen of waiting.get(ctx) ?? []) onOpen(this)
    waiting.delete(ctx)
  }

  /** Calls a function when the reply ends. */
  onClose(listener: () => void): void {
    this.#onClose.push(listener)
  }

  /** Call it when the reply has ended. */
  close(): void {
    for (const listener of this.#onClose.splice(0)) listener()
  }
}

/** Calls a function with the sending end of the reply, at once if it is open; never if it does not stay open. */
export function whenOpen(ctx: CoreContext, onOpen: OnOpen): void {
  const end = ends.get(ctx)
  if (end === undefined) waiting.set(ctx, [...(waiting.get(ctx) ?? []), onOpen])
  else onOpen(end)
}
