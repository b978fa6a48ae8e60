/**
 * Token buckets in Redis or Valkey, for processes on one machine or on many. A bucket is a key that holds the time, in
 * microseconds by the clock of Redis, at which it is full again; Redis deletes it then.
 */
import type { BucketSize, BucketStore } from '../protection/buckets.ts'
import type { Redis } from './client.ts'
import { encoded, integerIn, listIn } from './reply.ts'

/**
 * Takes a token. KEYS: the bucket. ARGV: the tokens of a full bucket, microseconds per token. Returns 1, or 0 when
 * there was none, and the microseconds until it is full. A clock set back cannot make a bucket emptier than empty.
 */
const takeScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst, interval = tonumber(ARGV[1]), tonumber(ARGV[2])
local wait = (tonumber(redis.call('GET', KEYS[1])) or 0) - now
wait = math.min(math.max(wait, 0), burst * interval)
if burst - wait / interval + 0.000001 < 1 then return {0, string.format('%.0f', wait)} end
wait = wait + interval
redis.call('SET', KEYS[1], string.format('%.0f', now + wait), 'PX', math.ceil(wait / 1000))
return {1, string.format('%.0f', wait)}`

/**
 * Makes the buckets of a rule. They reject as `Redis.command` does.
 * @param prefix the prefix of every key, such as `svc:`
 */
export function createRedisBuckets(redis: Redis, prefix: string, rule: string, size: BucketSize): BucketStore {
  const script = redis.script(takeScript)
  const { burst } = size
  const intervalUs = size.intervalMs * 1000
  return {
    take: async (key) => {
      const bucket = `${prefix}limit:${rule}:${burst}:${intervalUs}:${encoded(key)}`
      const [granted, waitUs] = listIn(await script.run([bucket], burst, intervalUs))
      return { isGranted: integerIn(granted) > 0, fullInMs: integerIn(waitUs) / 1000 }
    },
  }
}
