/**
 * The scripts of a queue; each runs atomically. The events of a queue are a list; each begins with its time in
 * microseconds since 1970. A separate hash holds the limits of the last push: `most` events, their `age` in
 * microseconds, the `life` of an unused queue in milliseconds. The events that a process has taken stay in a hash of
 * that process, by token, until a client has received them.
 *
 * Surprise: `take` may arrive after its process has stopped waiting for it and has requested `restore` on another
 * connection. So `restore` leaves a mark for a token that it does not find, and `take` does nothing when it finds one.
 *
 * Surprise: a server that is out of memory refuses only commands that add, and it must do so before a script changes
 * anything. So scripts that add begin with the addition, and scripts that take begin with commands that remove.
 */
import type { Redis } from './client.ts'

/**
 * `trim` drops the events beyond the limits, the oldest first, and returns their number. An event without a time was
 * not pushed by svc: it counts as too old.
 */
const begin = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function timeOf(event)
  local _, _, digits = string.find(event, '^(%d+) ')
  return tonumber(digits) or 0
end
local function trim(most, age)
  local dropped = 0
  local excess = most and redis.call('LLEN', KEYS[1]) - most or 0
  if excess > 0 then
    redis.call('LTRIM', KEYS[1], excess, -1)
    dropped = excess
  end
  local step = 1
  while age do
    local oldest = redis.call('LRANGE', KEYS[1], 0, step - 1)
    local old = 0
    while old < #oldest and now - timeOf(oldest[old + 1]) >= age do old = old + 1 end
    if old > 0 then redis.call('LTRIM', KEYS[1], old, -1) end
    dropped = dropped + old
    if old < step then break end
    step = 64
  end
  return dropped
end
local function live(life)
  redis.call('PEXPIRE', KEYS[1], life)
  redis.call('PEXPIRE', KEYS[2], life)
end`

const limits = `
local most, age, life = unpack(redis.call('HMGET', KEYS[2], 'most', 'age', 'life'))
most, age, life = tonumber(most), tonumber(age), tonumber(life) or 7200000
local takenLife = math.min(life, 86400000)`

/**
 * KEYS: events, limits. ARGV: the maximum number of events, `age`, `life`, the channel of PUBLISH, the text. Returns
 * the number of dropped events.
 */
const push = `${begin}
local count = redis.call('RPUSH', KEYS[1], string.format('%.0f ', now) .. ARGV[5])
redis.call('HSET', KEYS[2], 'most', ARGV[1], 'age', ARGV[2], 'life', ARGV[3])
local dropped = trim(tonumber(ARGV[1]), tonumber(ARGV[2]))
if redis.call('PTTL', KEYS[2]) < ARGV[3] / 2 then
  live(ARGV[3])
elseif count == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
redis.call('PUBLISH', ARGV[4], '')
return dropped`

/**
 * KEYS: events, limits, the events taken by this process. ARGV: the token of this call. Returns the number of dropped
 * events, the number of events left, and the event, which is missing when the queue is empty.
 */
const take = `${begin}${limits}
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return {0, 0} end
local dropped = trim(nil, age)
local event = redis.call('LPOP', KEYS[1])
if not event then return {dropped, 0} end
redis.call('HSET', KEYS[3], ARGV[1], event)
if redis.call('PTTL', KEYS[3]) < takenLife / 2 then redis.call('PEXPIRE', KEYS[3], takenLife) end
return {dropped, redis.call('LLEN', KEYS[1]), event}`

/**
 * KEYS: events, limits, the events taken by a process. ARGV: the channel of PUBLISH, the token of the event to put
 * back. It is idempotent. Returns the number of dropped events.
 */
const restore = `${begin}${limits}
local event = redis.call('HGET', KEYS[3], ARGV[2])
redis.call('HDEL', KEYS[3], ARGV[2])
if not event or event == '' then
  redis.call('HSET', KEYS[3], ARGV[2], '')
  redis.call('PEXPIRE', KEYS[3], takenLife)
  return 0
end
redis.call('LPUSH', KEYS[1], event)
local dropped = trim(most, age)
live(life)
redis.call('PUBLISH', ARGV[1], '')
return dropped`

/** KEYS: events, limits. Returns the number of dropped events and of events left. */
const sweep = `${begin}${limits}
local dropped = trim(most, age)
return {dropped, redis.call('LLEN', KEYS[1])}`

/** Prepares the scripts of queues for a client. */
export function createQueueScripts(redis: Redis) {
  return {
    push: redis.script(push),
    take: redis.script(take),
    restore: redis.script(restore),
    sweep: redis.script(sweep),
  }
}
