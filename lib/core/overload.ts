/**
 * What a client is told for whom there is no place: 503 with `Retry-After`. The log has one line a second of it at
 * most.
 */
import type { CoreContext } from '../http/context.ts'
import { HttpError } from '../http/errors.ts'
import { label, withRequestId } from '../http/label.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { RateLimited } from '../base/rate-limited.ts'
import type { ParkedKind } from '../http/parked.ts'
import type { PoolCounts } from './pool.ts'
import type { RestPool } from './rest-pool.ts'

/** After how many seconds a client should try again. */
const headers = { 'Retry-After': '1' }

/** Makes the errors that refuse, and logs each. */
export class Refusals {
  readonly #log: RateLimited
  /** One for all: to note down where an error was made takes longer than the rest of a refusal. */
  readonly #full = new HttpError(503, 'overloaded', 'Every worker is busy and the queue is full', { headers })

  /** @param log of module `pool` */
  constructor(log: ModuleLogger) {
    this.#log = new RateLimited(log.warn, 1000)
  }

  /** For a plain request. */
  full(ctx: CoreContext, { busy, waiting }: PoolCounts): HttpError {
    this.#say(ctx, `${busy} requests at work, ${waiting} waiting`)
    return this.#full
  }

  /** For one that would wait. */
  restFull(ctx: CoreContext, kind: ParkedKind, pool: RestPool): HttpError {
    const what = kind === 'sse' ? 'streams' : 'long polls'
    this.#say(ctx, `${pool[kind].busy} ${what} held, ${pool.queue} of the REST pool waiting`)
    return this.#full
  }

  /**
   * For one that would wait behind others of its connection. It is the last answer there: more of them would pile up.
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
