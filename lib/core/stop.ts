/**
 * The graceful stop: serve on while the load balancer takes note, then accept nothing new, answer what is there with
 * `Connection: close`, and let go. It takes no longer than `server.stop_timeout_s`; the last tenth of that is kept for
 * the background work, so that requests that hang leave it some time.
 *
 * Surprise: a connection that is idle when the stop begins is kept for a moment. Its client may just be sending, and a
 * connection cut under a request is a failed request; one that is answered with `Connection: close` is not. After that
 * moment only what is being served counts: a header section that has come in part waits no longer. So is it with one
 * that becomes idle later, since its answer had begun before the stop and could not say that it is the last.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { endsWithin } from '../base/deadline.ts'
import type { Listener } from './listener.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { RequestServer } from './server.ts'

export interface StopOptions {
  readonly log: ModuleLogger
  /** What the log says at the end. */
  readonly lastLine: string
  /** How long requests are still taken after the stop began; a server that does not listen does not wait. */
  readonly drainDelayMs: number
  /** The longest that the whole stop may take. */
  readonly timeoutMs: number
  readonly requests: RequestServer
  readonly listener: Listener
  /** Called when the stop begins. */
  readonly onBegin: () => void
  /** Called when nothing new is served any more: ends what would go on by itself. */
  readonly onDrain: () => void
  /** What comes last, when no request runs any more. */
  readonly finish: () => Promise<void>
}

export interface Stop {
  /**
   * Begins the stop, or joins the one that is under way. Resolves when it is done; never rejects.
   * @param drains whether the drain delay is waited for; true unless given
   */
  begin(drains?: boolean): Promise<void>
  /** Resolves when a stop is done. */
  readonly done: Promise<void>
  /** Whether a stop has begun. */
  readonly begun: boolean
}

/** How long connections are kept on which no request is being served, in milliseconds. */
const retireAfterMs = 500

/** Prepares the stop of one server. */
export function createStop(options: StopOptions): Stop {
  const { log, requests, listener, timeoutMs } = options
  let begun = false
  let resolveDone: () => void
  const done = new Promise<void>((resolve) => {
    resolveDone = resolve
  })

  async function run(drains: boolean): Promise<void> {
    const deadline = performance.now() + timeoutMs
    const answerMs = timeoutMs * 0.9
    const cutAt = performance.now() + answerMs
    if (drains && listener.listening && options.drainDelayMs > 0) await delay(Math.min(options.drainDelayMs, answerMs))
    requests.drain()
    options.onDrain()
    listener.closeIdle() // From now on each is given its time.
    // What the kernel has got until then is read first: a connection on which a request has come is not idle.
    const retire = setInterval(() => setImmediate(() => listener.closeIdle()), retireAfterMs)
    const answered = listener.acceptWaiting().then(() => Promise.all([listener.stopAccepting(), requests.idle()]))
    if (!(await endsWithin(cutAt - performance.now(), answered))) {
      const cut = requests.active === 1 ? '1 request' : `${requests.active} requests`
      log.warn(`the stop took longer than ${timeoutMs / 1000} s: cut ${cut}`)
      await listener.closeAll()
    }
    clearInterval(retire)
    try {
      const finished = await endsWithin(deadline - performance.now(), options.finish())
      if (!finished) log.warn('the background work did not end in time')
    } catch (error) {
      log.error('the background work could not be ended', error)
    }
    log.info(options.lastLine)
    resolveDone()
  }

  return {
    begin: (drains = true) => {
      if (!begun) {
        begun = true
        options.onBegin()
        void run(drains)
      }
      return done
    },
    done,
    get begun() {
      return begun
    },
  }
}
