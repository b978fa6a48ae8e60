/**
 * The sending end of a reply that stays open: a stream of events or a WebSocket. Code that has more to tell the client,
 * such as presence, gets it by the context, before or after the reply has begun.
 */
import type { CoreContext } from '../http/context.ts'

/** Called when the reply turns out to be one that stays open. */
type OnOpen = (end: LiveEnd) => void

const ends = new WeakMap<CoreContext, LiveEnd>()
const waiting = new WeakMap<CoreContext, OnOpen[]>()

/** The sending end of one open reply. */
export class LiveEnd {
  /** Sends JSON on one line: to a stream as an event of this name, to a WebSocket as text. */
  readonly send: (event: string, json: string) => void
  /**
   * Ends the reply so that the client reconnects at once; one that has vanished does not. Undefined where the
   * connection itself detects a client that has vanished.
   */
  readonly renew: (() => void) | undefined
  readonly #onClose: (() => void)[] = []

  /** Tells those who wait for it. */
  constructor(ctx: CoreContext, send: LiveEnd['send'], renew?: () => void) {
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

/** Calls a function with the sending end of the reply, at once when it is open; never when it does not stay open. */
export function whenLive(ctx: CoreContext, onOpen: OnOpen): void {
  const end = ends.get(ctx)
  if (end === undefined) waiting.set(ctx, [...(waiting.get(ctx) ?? []), onOpen])
  else onOpen(end)
}
