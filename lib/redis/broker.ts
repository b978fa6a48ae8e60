/**
 * The broker of a server with a shared engine: channels and queues in Redis or Valkey, used directly by any number of
 * processes on one machine or on many.
 *
 * It counts as cut off when commands cannot be sent. If only the connection for subscriptions is interrupted, events
 * are merely delayed: the missed ones are read when it is back.
 */
import type { Broker } from '../events/broker.ts'
import type { RedisBrokerOptions } from './broker-context.ts'
import { Calls } from '../events/calls.ts'
import { RedisChannels } from './channels.ts'
import { describe } from './errors.ts'
import { awayError } from '../http/errors.ts'
import { RedisQueues } from './queues.ts'

/** Makes a broker. When the server is away, its functions reject with HttpError 503 `shared_away`. */
export function createRedisBroker(options: RedisBrokerOptions): Broker {
  const calls = new Calls()
  const channels = new RedisChannels({ ...options, calls })
  const queues = new RedisQueues({ ...options, calls })
  const { redis } = options
  return {
    publish: (...event) => channels.publish(...event),
    read: (...range) => channels.read(...range),
    subscribe: (...listener) => channels.subscribe(...listener),
    push: (...event) => queues.push(...event),
    take: (...wanted) => queues.take(...wanted),
    endLease: (...lease) => queues.endLease(...lease),
    putBack: (...event) => queues.putBack(...event),
    handedOut: (...event) => queues.handedOut(...event),
    onAvailable: (...listener) => queues.onAvailable(...listener),
    onCutOff: (listener) => {
      let isCutOff = false
      redis.onState((state) => {
        if (isCutOff === (state === 'away')) return
        isCutOff = !isCutOff
        const { problem } = redis
        listener(isCutOff ? awayError(`The shared engine is away: ${describe(problem)}`, problem) : undefined)
      })
    },
    get dropped() {
      return queues.dropped
    },
    sweep: () => {
      channels.sweep()
      return queues.sweep()
    },
    close: async () => {
      channels.close()
      await calls.settled() // Until then, undelivered events are put back.
      await queues.close()
    },
  }
}
