/**
 * The scripts of a queue; each runs atomically. The events of a queue are a list; each begins with its time in
 * microseconds since 1970. A separate hash holds the limits of the last push: `most` events, their `age` in
 * microseconds, the `life` of an unused queue in milliseconds. The events that a process has taken stay in a hash of
 * that process, by token, until a client has received them. Those taken with a lease are in a hash of the queue, by
 * lease, until they are done; a sorted set has the time in microseconds at which each lease ends.
 *
 * Each script begins its KEYS with those of the queue: events, limits, leased events, ends of leases.
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
 * `restoreOverdue` makes some events available whose lease is over, the first to end the next to be taken, and tells
 * every process, since only the first script that looks finds them. `nextLease` returns the microseconds until the next
 * lease ends, -1 without one.
 */
const leases = `
local function restoreOverdue(channel)
  local over = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', string.format('%.0f', now), 'LIMIT', 0, 100)
  for at = #over, 1, -1 do
    redis.call('ZREM', KEYS[4], over[at])
    local event = redis.call('HGET', KEYS[3], over[at])
    redis.call('HDEL', KEYS[3], over[at])
    if event then redis.call('LPUSH', KEYS[1], event) end
  end
  if #over == 0 then return end
  live(life)
  redis.call('PUBLISH', channel, '')
end
local function nextLease()
  local first = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
  return first[2] and string.format('%.0f', math.max(0, first[2] - now)) or -1
end`

/**
 * ARGV: the maximum number of events, `age`, `life`, the channel of PUBLISH, the text. Returns
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
 * KEYS: and the events taken by this process. ARGV: the token of this call, which is the lease if it takes one; its
 * microseconds, 0 without; the channel of PUBLISH. Returns the number of dropped events, the number of events left,
 * `nextLease`, and the event, which is missing when the queue is empty.
 */
const take = `${begin}${limits}${leases}
if redis.call('HEXISTS', KEYS[5], ARGV[1]) == 1 then return {0, 0, -1} end
restoreOverdue(ARGV[3])
local dropped = trim(nil, age)
local event = redis.call('LPOP', KEYS[1])
if not event then return {dropped, 0, nextLease()} end
local leaseUs = tonumber(ARGV[2])
if leaseUs > 0 then
  redis.call('HSET', KEYS[3], ARGV[1], event)
  redis.call('ZADD', KEYS[4], string.format('%.0f', now + leaseUs), ARGV[1])
  for key = 3, 4 do redis.call('PEXPIRE', KEYS[key], life + 86400000) end
else
  redis.call('HSET', KEYS[5], ARGV[1], event)
  if redis.call('PTTL', KEYS[5]) < takenLife / 2 then redis.call('PEXPIRE', KEYS[5], takenLife) end
end
return {dropped, redis.call('LLEN', KEYS[1]), nextLease(), event}`

/**
 * KEYS: and the events taken by a process. ARGV: the channel of PUBLISH, the token of the event to put
 * back. It is idempotent. Returns the number of dropped events.
 */
const restore = `${begin}${limits}
local event = redis.call('HGET', KEYS[5], ARGV[2])
redis.call('HDEL', KEYS[5], ARGV[2])
if not event or event == '' then
  redis.call('HSET', KEYS[5], ARGV[2], '')
  redis.call('PEXPIRE', KEYS[5], takenLife)
  return 0
end
redis.call('LPUSH', KEYS[1], event)
local dropped = trim(most, age)
live(life)
redis.call('PUBLISH', ARGV[1], '')
return dropped`

/**
 * ARGV: the channel of PUBLISH, a lease, `done` or `back`. Returns whether the queue had the lease, as 1 or 0, and the
 * number of dropped events.
 */
const endLease = `${begin}${limits}
if redis.call('ZREM', KEYS[4], ARGV[2]) == 0 then return {0, 0} end
local event = redis.call('HGET', KEYS[3], ARGV[2])
redis.call('HDEL', KEYS[3], ARGV[2])
if ARGV[3] == 'done' or not event then return {1, 0} end
redis.call('LPUSH', KEYS[1], event)
local dropped = trim(most, age)
live(life)
redis.call('PUBLISH', ARGV[1], '')
return {1, dropped}`

/** ARGV: the channel of PUBLISH. Returns the number of dropped events, the number of events left, and `nextLease`. */
const sweep = `${begin}${limits}${leases}
restoreOverdue(ARGV[1])
local dropped = trim(most, age)
return {dropped, redis.call('LLEN', KEYS[1]), nextLease()}`

/** Prepares the scripts of queues for a client. */
export function createQueueScripts(redis: Redis) {
  return {
    push: redis.script(push),
    take: redis.script(take),
    restore: redis.script(restore),
    endLease: redis.script(endLease),
    sweep: redis.script(sweep),
  }
}
