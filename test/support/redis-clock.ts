import { randomUUID } from 'node:crypto'
import type { Redis } from '../../lib/redis/client.ts'

/**
 * A client whose scripts use a clock, set before each of them, instead of that of Redis.
 * @param prefix of the key that holds the time: each client has one of its own, which no other changes in between
 * @param now milliseconds since 1970
 */
export function withClock(redis: Redis, prefix: string, now: () => number): Redis {
  const key = `${prefix}clock:${randomUUID()}`
  const script: Redis['script'] = (source) => {
    const timed = redis.script(source.replace("redis.call('TIME')", `redis.call('LRANGE', '${key}', 0, 1)`))
    return {
      run: (keys, ...values) => {
        const ms = now()
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
