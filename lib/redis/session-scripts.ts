/**
 * What Redis does with a session, each as one step. A session is a hash, and expires by itself.
 *
 * Surprise: HSET comes before every other change. It alone is refused when the memory is full, and only as the first
 * change of a script: so either nothing is changed or everything is.
 */
import type { Redis, RedisScript } from './client.ts'

/** KEYS[1]: the session. Gives the milliseconds that it has left and its fields in pairs; null: there is none. */
const read = `
local fields = redis.call('HGETALL', KEYS[1])
if #fields == 0 then return false end
return {redis.call('PTTL', KEYS[1]), fields}`

/** ARGV: milliseconds to live, how many texts follow that are set, these in pairs, then the names that are removed. */
const change = `
local function change(key)
  local last = 2 + tonumber(ARGV[2])
  for first = 3, last, 1000 do
    redis.call('HSET', key, unpack(ARGV, first, math.min(first + 999, last)))
  end
  for first = last + 1, #ARGV, 1000 do
    redis.call('HDEL', key, unpack(ARGV, first, math.min(first + 999, #ARGV)))
  end
  redis.call('PEXPIRE', key, ARGV[1])
end`

/** KEYS[1]: the session. */
const create = `${change}
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('DEL', KEYS[1]) end
change(KEYS[1])`

/** KEYS[1]: the session. Gives 1, or 0 when there is none. */
const merge = `${change}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
change(KEYS[1])
return 1`

/** KEYS: the session, and its new key. Gives 1, or 0 when there is none. */
const rename = `${change}
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
change(KEYS[1])
redis.call('RENAME', KEYS[1], KEYS[2])
return 1`

/** The scripts of sessions. */
export interface SessionScripts {
  readonly read: RedisScript
  readonly create: RedisScript
  readonly merge: RedisScript
  readonly rename: RedisScript
}

/** Prepares the scripts for a client. */
export function createSessionScripts(redis: Redis): SessionScripts {
  return {
    read: redis.script(read),
    create: redis.script(create),
    merge: redis.script(merge),
    rename: redis.script(rename),
  }
}
