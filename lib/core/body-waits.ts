/**
 * Requests that wait for their clients to send a body: their workers serve other requests, and the memory of all
 * unfinished bodies together is bounded.
 *
 * Most bodies arrive in the event loop turn of their first read, so a worker is released only at the end of that turn.
 */
import type { CoreContext } from '../http/context.ts'
import { unserved } from '../http/errors.ts'
import type { ReadingWait } from '../http/read-chunks.ts'
import type { Pool } from './pool.ts'

/** The bytes that unfinished bodies may hold in memory before further bodies are refused. */
const maxHeldBytes = 64 * 1024 * 1024

/** The unfinished bodies of one server. */
export class BodyWaits {
  readonly pool: Pool<CoreContext>
  /** The bytes held in memory. */
  heldBytes = 0
  #begun: BodyWait[] = []
  readonly #onTurnEnd = (): void => {
    const begun = this.#begun
    this.#begun = []
    for (const wait of begun) wait.leaveWorker()
  }

  constructor(pool: Pool<CoreContext>) {
    this.pool = pool
  }

  /**
   * Call when a request starts to read a body that has not fully arrived.
   * @throws HttpError 503 when other bodies hold too much memory
   */
  begin(ctx: CoreContext): ReadingWait {
    const wait = new BodyWait(this, ctx)
    wait.hold(0)
    if (this.#begun.push(wait) === 1) setImmediate(this.#onTurnEnd)
    return wait
  }
}

class BodyWait implements ReadingWait {
  readonly #waits: BodyWaits
  readonly #ctx: CoreContext
  #heldBytes = 0
  #hasLeftWorker = false
  #isOver = false

  constructor(waits: BodyWaits, ctx: CoreContext) {
    this.#waits = waits
    this.#ctx = ctx
  }

  hold(bytes: number): void {
    const others = this.#waits.heldBytes - this.#heldBytes
    if (others > maxHeldBytes) throw unserved('Too many request bodies are arriving')
    this.#waits.heldBytes = others + bytes
    this.#heldBytes = bytes
  }

  leaveWorker(): void {
    if (this.#isOver || !this.#ctx.holdsWorker) return
    this.#hasLeftWorker = true
    this.#ctx.holdsWorker = false
    this.#waits.pool.leave()
  }

  end(proceed: () => void): boolean {
    const ctx = this.#ctx
    const { pool } = this.#waits
    this.#waits.heldBytes -= this.#heldBytes
    this.#isOver = true
    if (!this.#hasLeftWorker || !ctx.running) return true
    return (ctx.holdsWorker = pool.resume(() => {
      if (ctx.running) ctx.holdsWorker = true
      else pool.leave()
      proceed()
    }))
  }
}
