/**
 * `ctx.hold(work)`: waits for work of the application. It takes a worker of the long-poll pool, and the value of the
 * promise is the reply, as if the action had returned it.
 *
 * Surprise: the work starts when it has its worker, after the action and the middleware have returned. Its changes to
 * the session are not saved. The worker is free when the wait is over, even if the work ignores the signal and
 * continues.
 */
import type { HoldOptions } from 'svc'
import { isAbortError } from '../base/reason.ts'
import type { CoreContext as Context } from '../http/context.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import { DeferredReply, emptyReply, UpgradeReply, type ReadyReply } from '../http/reply.ts'
import { replyOf } from '../http/returned.ts'
import { checkTimeout } from './source.ts'

/** Returns a promise of the reply. The signal aborts at a disconnect, at the time-out and when the server stops. */
export type HeldWork = (signal: AbortSignal) => unknown

/**
 * Makes the reply that waits for work of the application.
 * @throws TypeError when the work is not a function, or `timeout_s` is not a number from 0
 */
export function hold(ctx: Context, work: HeldWork, { timeout_s = Infinity }: HoldOptions = {}): ParkedReply {
  if (typeof work !== 'function') {
    throw new TypeError(`Cannot hold: the work must be a function: it is a ${typeof work}`)
  }
  return new HeldReply(ctx, checkTimeout('hold', timeout_s), work)
}

class HeldReply extends ParkedReply {
  readonly #work: HeldWork
  #started = false
  /** Settles the promise of `ended`, while the work may still return. */
  #ending: { resolve: (reply: ReadyReply) => void; reject: (error: unknown) => void } | undefined = undefined

  constructor(ctx: Context, timeoutMs: number, work: HeldWork) {
    super(ctx, timeoutMs)
    this.#work = work
  }

  get kind(): 'longpoll' {
    return 'longpoll'
  }

  ready(): undefined {}

  waiting(): void {}

  started(): undefined {
    const { ctx } = this
    this.#started = true
    ctx.reply = undefined
    // Called within the promise, so that a thrown error becomes a rejection.
    new Promise((resolve) => resolve(this.#work(ctx.signal))).then(
      (value) => this.#finish(value),
      (error: unknown) => this.#failed(error),
    )
  }

  ended(reason: EndReason): ReadyReply | Promise<ReadyReply> | undefined {
    if (reason === 'left') return undefined
    if (!this.#started) return this.#noContent()
    return new Promise((resolve, reject) => {
      this.#ending = { resolve, reject }
      setImmediate(() => this.#takeEnding()?.resolve(this.#noContent()))
    })
  }

  #finish(value: unknown): void {
    try {
      const reply = replyOf(this.ctx, value)
      if (reply instanceof UpgradeReply) throw new TypeError('Cannot hold: the work returned the reply of a handshake')
      const ending = this.#takeEnding()
      if (ending === undefined) this.answer(reply)
      else ending.resolve(reply instanceof DeferredReply ? this.#noContent() : reply) // It is too late to wait again.
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    const ending = this.#takeEnding()
    if (ending === undefined) this.fail(error)
    else if (isAbortError(error)) ending.resolve(this.#noContent())
    else ending.reject(error)
  }

  #takeEnding() {
    const ending = this.#ending
    this.#ending = undefined
    return ending
  }

  #noContent(): ReadyReply {
    this.ctx.status = 204
    return emptyReply
  }
}
