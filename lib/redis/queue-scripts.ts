/**
 * What Redis does with a queue, each as one step. The events are a list, each its time in microseconds since 1970 and its
 * text; beside it a hash has the limits of the last push: `most` events, their `age` in microseconds, the `life` of an
 * unused queue in milliseconds. What a process has taken lies in a hash of its own until it was handed out, by token.
 *
 * Surprise: `take` may come late, when its process has given it up and another connection has asked what became of it.
 * So `restore` leaves a mark for a token that it does not find, and `take` does nothing where one is.
 *
 * Surprise: a full engine refuses what adds before anything was changed. What takes out begins with what removes.
 */
import type { Redis, RedisScript } from './client.ts'

/** `trim` drops what is over the limits, the oldest first, and gives how many those were. */
const begin = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function timeOf(event) return string.sub(event, 1, string.find(event, ' ', 1, true) - 1) end
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
 * KEYS: events, limits. ARGV: the most events, `age`, `life`, where it is announced, its tag, its text. Gives how many
 * events were dropped.
 */
const push = `${begin}
local count = redis.call('RPUSH', KEYS[1], string.format('%.0f ', now) .. ARGV[6])
redis.call('HSET', KEYS[2], 'most', ARGV[1], 'age', ARGV[2], 'life', ARGV[3])
local dropped = trim(tonumber(ARGV[1]), tonumber(ARGV[2]))
if redis.call('PTTL', KEYS[2]) < ARGV[3] / 2 then
  live(ARGV[3])
elseif count == 1 then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
redis.call('PUBLISH', ARGV[4], ARGV[5])
return dropped`

/**
 * KEYS: events, limits, what this process has taken. ARGV: a token of this call's own, then those of what was handed
 * out. Gives how many events were dropped, how many are left, and the event; without the latter there is none.
 */
const take = `${begin}${limits}
if #ARGV > 1 then redis.call('HDEL', KEYS[3], unpack(ARGV, 2)) end
if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return {0, 0} end
local dropped = trim(nil, age)
local event = redis.call('LPOP', KEYS[1])
if not event then return {dropped, 0} end
redis.call('HSET', KEYS[3], ARGV[1], event)
if redis.call('PTTL', KEYS[3]) < takenLife / 2 then redis.call('PEXPIRE', KEYS[3], takenLife) end
return {dropped, redis.call('LLEN', KEYS[1]), event}`

/**
 * KEYS: events, limits, what a process has taken. ARGV: where it is announced, its tag, then the tokens of what is put
 * back, the newest first. To do it twice is the same. Gives how many events were dropped.
 */
const restore = `${begin}${limits}
local restored = 0
for at = 3, #ARGV do
  local event = redis.call('HGET', KEYS[3], ARGV[at])
  redis.call('HDEL', KEYS[3], ARGV[at])
  if event and event ~= '' then
    restored = redis.call('LPUSH', KEYS[1], event)
  else
    redis.call('HSET', KEYS[3], ARGV[at], '')
    redis.call('PEXPIRE', KEYS[3], takenLife)
  end
end
if restored == 0 then return 0 end
local dropped = trim(most, age)
live(life)
redis.call('PUBLISH', ARGV[1], ARGV[2])
return dropped`

/**
 * KEYS: events, limits, what this process has taken. ARGV: tokens of what was handed out. Gives how many events were
 * dropped and how many are left.
 */
const sweep = `${begin}${limits}
if #ARGV > 0 then redis.call('HDEL', KEYS[3], unpack(ARGV)) end
local dropped = trim(most, age)
return {dropped, redis.call('LLEN', KEYS[1])}`

/** The scripts of queues. */
export interface QueueScripts {
  readonly push: RedisScript
  readonly take: RedisScript
  readonly restore: RedisScript
  readonly sweep: RedisScript
}

/** Prepares the scripts for a client. */
export function createQueueScripts(redis: Redis): QueueScripts {
  return {
    push: redis.script(push),
    take: redis.script(take),
    restore: redis.script(restore),
    sweep: redis.script(sweep),
  }
}
