/**
 * `ctx.hold(work)`: a wait of the application's own. It takes a worker for long polls, and the value of the promise is
 * the reply, as if the action had returned it.
 *
 * Surprise: the work begins when it has its worker, which is after the action has returned and middleware is done: what
 * it does to the session is no longer saved. Its worker is given back when the wait is over, even where the work does
 * not heed the signal and goes on.
 */
import { isAbortError } from '../base/reason.ts'
import type { CoreContext as Context } from '../http/context.ts'
import { emptyReply, UpgradeReply, type ReadyReply } from '../http/reply.ts'
import { ParkedReply, type EndReason } from '../http/parked.ts'
import { checkTimeout } from './source.ts'

/**
 * What is waited for: a promise of the reply. The signal aborts when the client leaves, the time is over or the server
 * stops.
 */
export type HeldWork = (signal: AbortSignal) => unknown

export interface HoldOptions {
  /** Seconds from the return of the action, 0 and up. `pool_rest.stream_timeout_s` unless given, and never longer. */
  readonly timeout_s?: number
}

/**
 * Makes the reply that waits for work of the application's own.
 * @throws TypeError when the work is no function, or `timeout_s` no number from 0
 */
export function hold(ctx: Context, work: HeldWork, options: HoldOptions = {}): ParkedReply {
  return new HeldReply(ctx, work, options)
}

/** What takes the answer that work gives at the last moment. */
interface LastWord {
  readonly resolve: (reply: ReadyReply) => void
  readonly reject: (error: unknown) => void
}

class HeldReply extends ParkedReply {
  readonly #work: HeldWork
  #begun = false
  #lastWord: LastWord | undefined = undefined

  constructor(ctx: Context, work: HeldWork, { timeout_s = Infinity }: HoldOptions) {
    if (typeof work !== 'function') {
      throw new TypeError(`Cannot hold: the work must be a function: it is a ${typeof work}`)
    }
    super(ctx, checkTimeout('hold', timeout_s))
    this.#work = work
  }

  get kind(): 'longpoll' {
    return 'longpoll'
  }

  ready(): undefined {}

  waiting(): void {}

  started(): undefined {
    const { ctx } = this
    this.#begun = true
    ctx.reply = undefined
    // Called within the promise, so that what it throws is a rejection too.
    new Promise((resolve) => resolve(this.#work(ctx.signal))).then(
      (value) => this.#finish(value),
      (error: unknown) => this.#giveUp(error),
    )
  }

  ended(reason: EndReason): ReadyReply | Promise<ReadyReply> | undefined {
    if (reason === 'left') return undefined
    if (!this.#begun) return this.#empty()
    return new Promise((resolve, reject) => {
      this.#lastWord = { resolve, reject }
      setImmediate(() => {
        if (this.#lastWord === undefined) return
        this.#lastWord = undefined
        resolve(this.#empty())
      })
    })
  }

  #finish(value: unknown): void {
    try {
      const reply = this.ctx.replyOf(value)
      if (reply instanceof ParkedReply || reply instanceof UpgradeReply) {
        throw new TypeError('Cannot hold: the work came back with a reply that waits itself')
      }
      if (!this.#say((word) => word.resolve(reply))) this.answer(reply)
    } catch (error) {
      this.#giveUp(error)
    }
  }

  #giveUp(error: unknown): void {
    const said = this.#say((word) => (isAbortError(error) ? word.resolve(this.#empty()) : word.reject(error)))
    if (!said) this.fail(error)
  }

  /** Whether the last word was still to be said. */
  #say(what: (word: LastWord) => void): boolean {
    const word = this.#lastWord
    if (word === undefined) return false
    this.#lastWord = undefined
    what(word)
    return true
  }

  #empty(): ReadyReply {
    this.ctx.status = 204
    return emptyReply
  }
}
