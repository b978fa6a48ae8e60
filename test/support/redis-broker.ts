import type { TestContext } from 'node:test'
import type { Broker } from '../../lib/events/broker.ts'
import { createRedisBroker } from '../../lib/redis/broker.ts'
import type { Redis } from '../../lib/redis/client.ts'
import type { BrokerClocks } from '../events/broker-conformance.ts'
import { openRedis } from './redis-server.ts'

/** A broker over Redis, and what it told of. */
export interface TestBroker {
  readonly broker: Broker
  readonly redis: Redis
  readonly problems: readonly string[]
}

export interface TestBrokerOptions {
  /** `svc:` by default. */
  readonly prefix?: string
  /** The time of scripts, in place of the engine's. */
  readonly clocks?: BrokerClocks
  readonly commandTimeoutMs?: number
}

/** Opens a broker with a client of its own; both are closed when the test ends. */
export function openBroker(t: Pick<TestContext, 'after'>, url: string, options: TestBrokerOptions = {}): TestBroker {
  const { prefix = 'svc:', clocks, ...rest } = options
  const redis = openRedis(t, url, rest)
  const problems: string[] = []
  const broker = createRedisBroker({
    redis: clocks === undefined ? redis : withClock(redis, prefix, clocks),
    prefix,
    channelPrefix: `${prefix}0:`,
    onProblem: (message) => problems.push(message),
  })
  t.after(() => broker.close())
  return { broker, redis, problems }
}

/** A client whose scripts use a clock, set before each of them. */
function withClock(redis: Redis, prefix: string, { wallNow }: BrokerClocks): Redis {
  const key = `${prefix}clock`
  const script: Redis['script'] = (source) => {
    const timed = redis.script(source.replace("redis.call('TIME')", `redis.call('LRANGE', '${key}', 0, 1)`))
    return {
      run: (keys, ...values) => {
        const ms = wallNow()
        const ignore = (): void => {} // The script fails as well.
        redis.command('DEL', key).catch(ignore)
        redis.command('RPUSH', key, Math.floor(ms / 1000), (ms % 1000) * 1000).catch(ignore)
        return timed.run(keys, ...values)
      },
    }
  }
  return new Proxy(redis, {
    get: (target, name) => {
      if (name === 'script') return script
      const value = Reflect.get(target, name) as unknown
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}
