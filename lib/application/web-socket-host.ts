/**
 * The WebSockets of a server. Their code is loaded with the first module that exports `websocket`: at the start, at a
 * reload, or when such a route is added.
 */
import { loadRoom } from '../config/load-room.ts'
import type { PoolCounts } from '../core/pool.ts'
import type { CoreContext } from '../http/context.ts'
import type { UpgradeReply } from '../http/reply.ts'
import type { WebSocketHandlers } from '../websocket/connection.ts'
import type { createWebSockets, WebSockets } from '../websocket/sockets.ts'

type WebSocketsOptions = Parameters<typeof createWebSockets>[0]

/** Serves WebSockets once their code is loaded. Until then it has no connections. */
export class WebSocketHost {
  readonly #options: WebSocketsOptions
  #loading: Promise<void> | undefined
  #loaded: WebSockets | undefined
  #isStopping = false

  constructor(options: WebSocketsOptions) {
    this.#options = options
  }

  /** Loads the code, once. Rejects with MissingRoomError. */
  load(): Promise<void> {
    return (this.#loading ??= this.#load())
  }

  /** As {@link WebSockets.accept}; call it when `load` has resolved. */
  accept(ctx: CoreContext, handlers: WebSocketHandlers<CoreContext>): UpgradeReply {
    if (this.#loaded === undefined) throw new Error('The code for WebSockets is not loaded')
    return this.#loaded.accept(ctx, handlers)
  }

  /** As {@link WebSockets.stop}. */
  stop(): void {
    this.#isStopping = true
    this.#loaded?.stop()
  }

  /** As {@link WebSockets.gone}. */
  gone(): Promise<void> {
    return this.#loaded?.gone() ?? Promise.resolve()
  }

  get pool(): PoolCounts {
    return this.#loaded?.pool ?? { workers: this.#options.workers, queueSize: 0, busy: 0, waiting: 0, refused: 0 }
  }

  /** As {@link WebSockets.slow}. */
  get slow(): number {
    return this.#loaded?.slow ?? 0
  }

  async #load(): Promise<void> {
    const { createWebSockets } = await loadRoom('the export websocket', () => import('../websocket/sockets.ts'))
    this.#loaded = createWebSockets(this.#options)
    if (this.#isStopping) this.#loaded.stop()
  }
}
