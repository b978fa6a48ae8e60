/**
 * The broker of a server with a shared engine: channels and queues in Redis or Valkey, used directly by any number of
 * processes on one machine or on many.
 *
 * It counts as cut off at once when commands cannot be sent, and after a second when only the connection for
 * subscriptions is missing. A shorter interruption of that connection costs nothing: the missed events are read.
 */
import type { Broker } from '../events/broker.ts'
import type { RedisBrokerOptions } from './broker-parts.ts'
import { Calls } from './calls.ts'
import { RedisChannels } from './channels.ts'
import type { Redis } from './client.ts'
import { answerFor, RedisAwayError } from './errors.ts'
import { RedisQueues } from './queues.ts'

/** Milliseconds without a connection for subscriptions until the broker counts as cut off. */
const deafMs = 1000

/** Makes a broker. When the server is away, its functions reject with HttpError 503 `shared_away`. */
export function createRedisBroker(options: RedisBrokerOptions): Broker {
  const calls = new Calls()
  const channels = new RedisChannels({ ...options, calls })
  const queues = new RedisQueues({ ...options, calls })
  const watch = new ReachWatch(options.redis)
  return {
    publish: (...event) => channels.publish(...event),
    read: (...range) => channels.read(...range),
    subscribe: (...listener) => channels.subscribe(...listener),
    push: (...event) => queues.push(...event),
    take: (queue) => queues.take(queue),
    putBack: (...event) => queues.putBack(...event),
    handedOut: (...event) => queues.handedOut(...event),
    onAvailable: (...listener) => queues.onAvailable(...listener),
    onCutOff: (listener) => void (watch.listener = listener),
    get dropped() {
      return queues.dropped
    },
    sweep: () => queues.sweep(),
    close: async () => {
      watch.close()
      await calls.settled() // Until then events that nobody got are put back.
      await queues.close()
    },
  }
}

/** Tells when the engine cannot be reached, and when it can be again. */
class ReachWatch {
  listener: (reason: Error | undefined) => void = () => {}
  readonly #redis: Redis
  readonly #stops: readonly (() => void)[]
  #isCutOff = false
  #deafTimer: NodeJS.Timeout | undefined = undefined

  constructor(redis: Redis) {
    this.#redis = redis
    this.#stops = [redis.onState(() => this.#look()), redis.onHearing(() => this.#look())]
  }

  close(): void {
    for (const stop of this.#stops) stop()
    clearTimeout(this.#deafTimer)
  }

  /** Called when the state of either connection changes. */
  #look(): void {
    const { state, hearing } = this.#redis
    clearTimeout(this.#deafTimer)
    if (state === 'away') this.#setCutOff('no command can be sent')
    else if (hearing !== 'away') this.#setCutOff(undefined)
    else if (!this.#isCutOff) {
      this.#deafTimer = setTimeout(() => this.#setCutOff('no message can be received'), deafMs).unref()
    }
  }

  /** @param why undefined: the broker is connected */
  #setCutOff(why: string | undefined): void {
    if (this.#isCutOff === (why !== undefined)) return
    this.#isCutOff = why !== undefined
    this.listener(why === undefined ? undefined : this.#errorOf(why))
  }

  #errorOf(why: string): Error {
    const { problem } = this.#redis
    const error = new RedisAwayError(`The shared engine is away: ${problem?.message ?? why}`, problem)
    return answerFor(error) as Error // It turns a RedisAwayError into an HttpError.
  }
}
