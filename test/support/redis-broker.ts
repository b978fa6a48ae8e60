import type { TestContext } from 'node:test'
import type { Broker } from '../../lib/events/broker.ts'
import { createRedisBroker } from '../../lib/redis/broker.ts'
import type { Redis } from '../../lib/redis/client.ts'
import type { BrokerClocks } from '../events/broker-conformance.ts'
import { withClock } from './redis-clock.ts'
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
    redis: clocks === undefined ? redis : withClock(redis, prefix, clocks.wallNow),
    prefix,
    channelPrefix: `${prefix}0:`,
    onProblem: (message) => problems.push(message),
  })
  t.after(() => broker.close())
  return { broker, redis, problems }
}
