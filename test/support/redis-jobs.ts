import type { TestContext } from 'node:test'
import type { Redis } from '../../lib/redis/client.ts'
import { RedisJobs } from '../../lib/redis/jobs.ts'
import { withClock } from './redis-clock.ts'
import { openRedis } from './redis-server.ts'

/** A job store over Redis, and what it told of. */
export interface TestJobs {
  readonly store: RedisJobs
  readonly redis: Redis
  readonly problems: readonly string[]
  readonly errors: readonly string[]
}

export interface TestJobsOptions {
  /** `svc:` by default. */
  readonly prefix?: string
  /** The time of this process and of scripts, in place of the engine's. */
  readonly now?: () => number
  readonly commandTimeoutMs?: number
}

/** Opens a store with a client of its own; both are closed when the test ends. */
export function openJobs(t: Pick<TestContext, 'after'>, url: string, options: TestJobsOptions = {}): TestJobs {
  const { prefix = 'svc:', now, ...rest } = options
  const redis = openRedis(t, url, rest)
  const problems: string[] = []
  const errors: string[] = []
  const store = new RedisJobs({
    redis: now === undefined ? redis : withClock(redis, prefix, now),
    prefix,
    channelPrefix: `${prefix}0:`,
    log: { error: (message) => void errors.push(message) },
    onProblem: (message) => void problems.push(message),
    now: now ?? Date.now,
  })
  t.after(() => store.close())
  return { store, redis, problems, errors }
}
