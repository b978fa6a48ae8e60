/**
 * What Redis does with a channel, each as one step. The events are a stream, whose ids are theirs; beside it a hash has
 * `last`, the newest id, `gone`, that of the newest event that is no longer there, and with the first event `age` and
 * `life`, how long an event is kept and how long an unused channel. Ids are microseconds since 1970, so an age is a
 * difference of ids.
 *
 * Surprise: the engine may lose one of both keys, as it does with a policy that evicts. Events are never passed over in
 * silence then: without the hash the stream goes too, and where the stream is gone, so are all events up to `last`.
 */
import type { Redis, RedisScript } from './client.ts'

/**
 * `drop` removes events up to the last of a list, and gives its id. `tooOld` gives the newest event that is: it asks for the
 * oldest first, since XREVRANGE looks at every event where there is none. Numbers become texts by `digits` alone: ids are
 * long.
 */
const begin = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function digits(number) return string.format('%.0f', number) end
local function drop(events)
  local id = string.sub(events[#events][1], 1, -3)
  redis.call('XTRIM', KEYS[1], 'MINID', id .. '-1')
  return tonumber(id)
end
local function tooOld(age)
  local cut = digits(math.max(0, now - age))
  local oldest = redis.call('XRANGE', KEYS[1], '-', cut, 'COUNT', 1)
  if #oldest == 0 then return oldest end
  return redis.call('XREVRANGE', KEYS[1], cut, '-', 'COUNT', 1)
end
local function live(life)
  redis.call('PEXPIRE', KEYS[1], life)
  redis.call('PEXPIRE', KEYS[2], life)
end`

/**
 * KEYS: events, state. ARGV: the most events, `age` in microseconds, `life` in milliseconds, where it is announced, its
 * tag, its text. Gives its id.
 */
const publish = `${begin}
local most, age, life = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local last, gone = unpack(redis.call('HMGET', KEYS[2], 'last', 'gone'))
local count = redis.call('XLEN', KEYS[1])
if not last then
  if count > 0 then redis.call('DEL', KEYS[1]) end
  last, count = now - 1, 0
end
last = tonumber(last)
gone = count == 0 and last or tonumber(gone)
local id = math.max(last + 1, now)
redis.call('XADD', KEYS[1], digits(id) .. '-0', 't', ARGV[6])
local isNew = count == 0
count = count + 1
local old = tooOld(age)
if #old > 0 then
  gone = drop(old)
  count = redis.call('XLEN', KEYS[1])
end
while count > most do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', math.min(count - most, 100))
  gone = drop(oldest)
  count = count - #oldest
end
redis.call('HSET', KEYS[2], 'last', digits(id), 'gone', digits(gone), 'age', ARGV[2], 'life', ARGV[3])
if isNew or redis.call('PTTL', KEYS[2]) < life / 2 then live(life) end
redis.call('PUBLISH', ARGV[4], digits(id) .. ' ' .. ARGV[5] .. ' ' .. ARGV[6])
return digits(id)`

/**
 * KEYS: events, state. ARGV: the id after which to read, empty for none; the `life` of a channel without events, in
 * milliseconds; about how many bytes and events to give. Gives the newest id, whether there is a gap, whether there is
 * more, then id and text of each event.
 */
const read = `${begin}
local last, gone, age, life = unpack(redis.call('HMGET', KEYS[2], 'last', 'gone', 'age', 'life'))
if not last then
  last, gone, life = now - 1, now - 1, ARGV[2]
  redis.call('HSET', KEYS[2], 'last', digits(last), 'gone', digits(gone), 'life', life)
  redis.call('DEL', KEYS[1])
  live(life)
elseif redis.call('PTTL', KEYS[2]) < life / 2 then
  live(life)
end
last, gone = tonumber(last), tonumber(gone)
local since = tonumber(ARGV[1])
if not since or since == last then return {digits(last), 0, 0} end
local old = age and tooOld(age) or {}
if #old > 0 then
  gone = drop(old)
  redis.call('HSET', KEYS[2], 'gone', digits(gone))
elseif gone < last and redis.call('XLEN', KEYS[1]) == 0 then
  gone = last
  redis.call('HSET', KEYS[2], 'gone', digits(gone))
end
local gap = since < gone or since > last
local answer = {digits(last), gap and 1 or 0, 0}
local from, bytes, most, step = gap and '-' or digits(since + 1), 0, tonumber(ARGV[4]), 2
while true do
  local found = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', step)
  for _, event in ipairs(found) do
    if bytes >= tonumber(ARGV[3]) or most == 0 then
      answer[3] = 1
      return answer
    end
    answer[#answer + 1] = event[1]
    answer[#answer + 1] = event[2][2]
    bytes, most = bytes + #event[2][2], most - 1
  end
  if #found < step then return answer end
  from = '(' .. found[#found][1]
  step = math.min(step * 4, math.max(2, math.floor((ARGV[3] - bytes) * (#answer - 3) / 2 / bytes)))
end`

/** The scripts of channels. */
export interface ChannelScripts {
  readonly publish: RedisScript
  readonly read: RedisScript
}

/** Prepares the scripts for a client. */
export function createChannelScripts(redis: Redis): ChannelScripts {
  return { publish: redis.script(publish), read: redis.script(read) }
}
