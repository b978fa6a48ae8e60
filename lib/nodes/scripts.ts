/**
 * What the shared engine does for the nodes, each as one step.
 *
 * Surprise: every time is the engine's. The clocks of the nodes may say what they want.
 */
import type { Redis, RedisScript } from '../redis/client.ts'

const now = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end`

const position = `
local function position()
  return redis.call('HMGET', KEYS[1], 'seq', 'stamp')
end`

/**
 * KEYS: the state, the lock. ARGV: token, milliseconds.
 * Gives 1, the position and the time; or 0 when another has the lock.
 */
const lock = `${now}${position}
if not redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {0} end
local at = position()
return {1, at[1], at[2], now()}`

/** KEYS: the lock. ARGV: token, milliseconds. Gives 0 when the lock is another's. */
const renew = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`

/** KEYS: the lock. ARGV: token, channel, message. */
const unlock = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`

/**
 * Sets ARGV[first] and what follows in pairs, \`sets\` texts, then removes the fields that come behind them. HSET comes
 * first: it alone is refused when the memory is full.
 */
const edit = `
local function edit(first, sets)
  local last = first + sets - 1
  for at = first, last, 1000 do redis.call('HSET', KEYS[1], unpack(ARGV, at, math.min(at + 999, last))) end
  for at = last + 1, #ARGV, 1000 do redis.call('HDEL', KEYS[1], unpack(ARGV, at, math.min(at + 999, #ARGV))) end
end`

/**
 * Records a change. KEYS: the state, the lock, when nodes were seen. ARGV: token, the position that it follows (number,
 * stamp), channel, message, how many texts are set, these, the fields that are removed.
 * Gives 'ok' and when each node was seen; 'lost' when the lock is another's; 'behind' when the state is another one.
 */
const record = `${position}${edit}
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {'lost'} end
local at = position()
if (at[1] or '0') ~= ARGV[2] or (at[2] or '') ~= ARGV[3] then return {'behind'} end
edit(7, tonumber(ARGV[6]))
redis.call('PUBLISH', ARGV[4], ARGV[5])
return {'ok', redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')}`

/**
 * Puts back a state that the engine has lost; it needs no turn, since it is done where it is newer alone, and whoever has
 * the turn then finds that what they began with is gone. KEYS: the state. ARGV: number, channel, message, how many texts
 * are set, these. Gives 0 when the engine has a state that is as new.
 */
const putBack = `${position}${edit}
if tonumber(position()[1] or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('DEL', KEYS[1])
edit(5, tonumber(ARGV[4]))
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`

/**
 * Says that a node is there. KEYS: the state, the nodes, when each was seen. ARGV: its id, what it tells of itself,
 * milliseconds after which one that is gone is forgotten, what its channel begins with.
 *
 * When nobody was seen for a while, the engine stood still, or its clock was set: that time counts for no node.
 * Gives the time, the position, the nodes in pairs, when each was seen, and who listens to its channel.
 */
const beat = `${now}${position}
local time = now()
local seen = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
local newest = tonumber(seen[#seen] or time)
local still = time - newest
if still < 0 or (still > 2500 and still < 60000) then
  local shift = still < 0 and still or still - 1000
  for at = 1, #seen, 2 do redis.call('ZADD', KEYS[3], tonumber(seen[at + 1]) + shift, seen[at]) end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', time - tonumber(ARGV[3]))) do
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[3], time, ARGV[1])
local channels = {}
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do channels[#channels + 1] = ARGV[4] .. id end
local at = position()
return {
  time, at[1], at[2],
  redis.call('HGETALL', KEYS[2]),
  redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'),
  redis.call('PUBSUB', 'NUMSUB', unpack(channels)),
}`

/** KEYS: the nodes, when each was seen. ARGV: id, channel, message. */
const leave = `
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1`

const sources = { lock, renew, unlock, record, putBack, beat, leave }

/** The scripts of nodes. */
export type NodeScripts = Readonly<Record<keyof typeof sources, RedisScript>>

/** Prepares the scripts for a client. */
export function createNodeScripts(redis: Redis): NodeScripts {
  const entries = Object.entries(sources).map(([name, source]) => [name, redis.script(source)])
  return Object.fromEntries(entries) as NodeScripts // It has the same names.
}

/** The names under which the nodes keep and tell what they have in common. */
export interface NodeKeys {
  readonly state: string
  readonly lock: string
  /** A hash: what each node tells of itself. */
  readonly nodes: string
  /** A sorted set: when each was seen. */
  readonly seen: string
  /** The channel of all. */
  readonly channel: string
  /** What the channel of each begins with; its id follows. */
  readonly own: string
}

/**
 * @param prefix what every key begins with, such as `svc:`
 * @param place what the name of every channel of PUBLISH begins with, another one for each database
 */
export function nodeKeys(prefix: string, place: string): NodeKeys {
  return {
    state: `${prefix}nodes:state`,
    lock: `${prefix}nodes:lock`,
    nodes: `${prefix}nodes`,
    seen: `${prefix}nodes:seen`,
    channel: `${place}nodes`,
    own: `${place}nodes:`,
  }
}
