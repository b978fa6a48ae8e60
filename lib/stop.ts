/**
 * The graceful stop: serve on while the load balancer takes note, then accept nothing new, answer what is there with
 * `Connection: close`, and let go. It takes no longer than `server.stop_timeout_s`.
 *
 * Surprise: a connection that is idle when the stop begins is kept for a moment. Its client may just be sending, and a
 * connection cut under a request is a failed request; one that is answered with `Connection: close` is not.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Listener } from './listener.ts'
import type { ModuleLogger } from './log/logger.ts'
import type { RequestServer } from './server.ts'

export interface StopOptions {
  readonly log: ModuleLogger
  /** How long requests are still taken after the stop began. */
  readonly drainDelayMs: number
  /** The longest that the whole stop may take. */
  readonly timeoutMs: number
  readonly requests: RequestServer
  readonly listener: Listener
  /** What comes last, when no request runs any more. */
  readonly finish: () => Promise<void>
}

export interface Stop {
  /** Begins the stop, or joins the one that is under way. Resolves when it is done. */
  begin(): Promise<void>
  /** Resolves when a stop is done. */
  readonly done: Promise<void>
  /** Whether a stop has begun. */
  readonly begun: boolean
}

/** How long idle connections are kept, in milliseconds. */
const retireAfterMs = 500

/** Prepares the stop of one server. */
export function createStop(options: StopOptions): Stop {
  const { log, requests, listener } = options
  let running: Promise<void> | undefined
  let resolveDone: () => void
  const done = new Promise<void>((resolve) => {
    resolveDone = resolve
  })

  async function run(): Promise<void> {
    const deadline = new AbortController()
    const timeout = delay(options.timeoutMs, 'late', { signal: deadline.signal }).catch(() => 'in time')
    await Promise.race([delay(options.drainDelayMs), timeout])
    requests.drain()
    const retire = setTimeout(() => listener.closeIdle(), retireAfterMs)
    const answered = Promise.all([listener.stopAccepting(), requests.idle()])
    if ((await Promise.race([answered, timeout])) === 'late') {
      log.warn(`the stop took longer than ${options.timeoutMs / 1000} s: cut ${requests.active} requests`)
      listener.closeAll()
    }
    clearTimeout(retire)
    if ((await Promise.race([options.finish(), timeout])) === 'late') log.warn('the background work did not end in time')
    deadline.abort()
    log.info('stopped')
    resolveDone()
  }

  return {
    begin: () => (running ??= run()),
    done,
    get begun() {
      return running !== undefined
    },
  }
}
