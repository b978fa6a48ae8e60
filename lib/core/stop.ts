/**
 * The graceful stop: keep serving while the load balancer notices, then accept nothing new, answer pending requests
 * with `Connection: close`, and close. It takes at most `server.stop_timeout_s`; the last tenth of that is reserved for
 * the background work, so that hanging requests leave it some time.
 *
 * Surprise: a connection that is idle when the stop begins is kept for half a second. Its client may just be sending a
 * request, which would fail if the connection were cut, but can be answered with `Connection: close`. After that, only
 * requests that are being served keep a connection, not an incomplete header section. A connection that becomes idle
 * later is kept just as long, since its response began before the stop, without `Connection: close`.
 */
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { endsWithin } from '../base/deadline.ts'
import type { LogPort } from '../base/ports.ts'
import type { Listener } from './listener.ts'
import type { RequestServer } from './server.ts'

/** The parts of a server to stop, and the times of a stop. */
interface StopOptions {
  readonly log: LogPort
  /** The last line of the log. */
  readonly lastLine: string
  /** Called before the last line. */
  readonly onEnd: () => void
  /** How long requests are served normally after the stop begins, in milliseconds; ignored while not listening. */
  readonly drainDelayMs: number
  /** The maximum duration of the whole stop, in milliseconds. */
  readonly timeoutMs: number
  readonly requests: RequestServer
  readonly listener: Listener
  /** Called when the stop begins. */
  readonly onBegin: () => void
  /** Called when new requests are no longer served: ends connections that would stay open otherwise. */
  readonly onDrain: () => void
  /** Called last, when no request is running. */
  readonly finish: () => Promise<void>
}

/** How long idle connections are kept, in milliseconds. */
const retireAfterMs = 500

/** Prepares the stop of one server. */
export function createStop(options: StopOptions) {
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
    listener.closeIdle() // Only records the idle connections; the next call closes those that still are idle.
    // `setImmediate`: input in the kernel is read first, so a connection with a new request is not idle.
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
      log.error('the background work could not be stopped', { thrown: error })
    }
    options.onEnd()
    log.info(options.lastLine)
    resolveDone()
  }

  return {
    /**
     * Begins the stop, or joins a running one. Resolves when it is done; never rejects.
     * @param drains whether to wait for the drain delay
     */
    begin: (drains = true): Promise<void> => {
      if (!begun) {
        begun = true
        options.onBegin()
        void run(drains)
      }
      return done
    },

    /** Resolves when a stop is done. */
    done,

    /** Whether a stop has begun. */
    get begun(): boolean {
      return begun
    },
  }
}
