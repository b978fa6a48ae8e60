/**
 * The refusal of requests that find no place: 503 with `Retry-After`, and at most one line a second in the log.
 */
import type { LogPort } from '../base/ports.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { label, withRequestId } from '../http/label.ts'
import type { ParkedKind } from '../http/parked.ts'
import type { PoolCounts } from './pool.ts'
import type { RestPool } from './rest-pool.ts'

/** Seconds after which a client should retry. */
const headers = { 'Retry-After': '1' }

/** Makes the errors, and logs them. */
export class Refusals {
  readonly #log: RateLimited
  /** One for all requests: taking the stack of an error takes longer than the rest of a refusal. */
  readonly #full = new HttpError(503, 'overloaded', 'Every worker is busy and the queue is full', { headers })

  /** @param log of module `pool` */
  constructor(log: LogPort) {
    this.#log = new RateLimited(log.warn, 1000)
  }

  /** For a plain request. */
  full(ctx: CoreContext, { busy, waiting }: PoolCounts): HttpError {
    this.#say(ctx, `${busy} requests at work, ${waiting} waiting`)
    return this.#full
  }

  /** For a reply that would wait. */
  restFull(ctx: CoreContext, kind: ParkedKind, pool: RestPool): HttpError {
    const what = kind === 'sse' ? 'streams' : 'long polls'
    this.#say(ctx, `${pool[kind].busy} ${what} held, ${pool.queue} of the REST pool waiting`)
    return this.#full
  }

  /**
   * For a reply that would wait behind others of its connection. It is the last answer there, or more would pile up.
   */
  behind(ctx: CoreContext): HttpError {
    ctx.lastOnConnection = true
    this.#say(ctx, 'others of its connection wait before it')
    return new HttpError(503, 'overloaded', 'Other requests of this connection wait before it', { headers })
  }

  #say(ctx: CoreContext, state: string): void {
    this.#log.say(withRequestId(`refused ${label(ctx)}: ${state}`, ctx))
  }
}
