/**
 * The scripts of the jobs in Redis; each runs atomically. Ids have 16 digits here, so that texts sort as numbers do.
 * Times are milliseconds since 1970 by the clock of Redis. The keys, after the prefix `<shared.name>:jobs:`:
 *
 * - `id`: the last id. `names`: the names that have jobs. `schedules`: by name, its next time, a space and its `spec`.
 * - `job:ID`: a hash with `name`, `state`, `due`, `tries` and `ends`; some have `key`, `data`, `error`, `owner`, and
 *   `ended`, when it died.
 * - `waiting:NAME`, `running:NAME`, `dead:NAME`: the ids in a state. `due:NAME`, `ended:NAME`: the ids that wait or are
 *   dead, by that time. `keys:NAME`: the keys of those that wait, each with its id.
 * - `done:DAY`: by name, how many jobs were done.
 * - `owners`: when each owner counts as gone. `owner:OWNER`: the ids of its running jobs. `until`: the ids of running
 *   jobs, by the time when their try must be over. `looked`: when somebody last checked these times.
 *
 * Surprise: if nobody has checked for a while, Redis was down, or every server was. All owners and overdue tries then
 * get a new term, so that a restart of Redis costs no job a try.
 *
 * Surprise: `wait` publishes a job only if it is the first of its name. A later one needs no message: every process
 * knows when the first is due, claims it then at the latest, and learns from the claim when the next is due.
 *
 * Surprise: two waiting jobs may have the same key, if one of them waits for its next try. So `keys` is a sorted set of
 * entries `LENGTH:KEY:ID`. With its length in front, no key is the beginning of another, and the lowest id comes first.
 *
 * Surprise: a server that is out of memory refuses only commands that add, and it must do so before a script changes
 * anything. So scripts that add begin with the addition, and scripts that take begin with a removal.
 */
import { endedTooOften, keepDeadMs, maxDead, maxEnds, scheduleKey } from '../jobs/job-store.ts'
import type { Redis } from './client.ts'

/** Milliseconds after which an owner that has not been renewed is gone. */
export const ownerMs = 20_000
/** Milliseconds that an owner has to report the end of a try after its `timeout_s`. */
const reportMs = 1000
/** When nobody has looked for longer than this, in milliseconds, no owner is judged. */
const longestGapMs = 10_000
/** `claim` gives no further job when those it gives have this many bytes of data: the client accepts 64 MiB. */
const claimedBytes = 2 ** 20
const keepDoneS = 3 * 86_400

/**
 * KEYS of every script: the prefix. ARGV[1] of every script: the channel of PUBLISH. Every script returns its result,
 * the ids and names of the jobs that are dead because their process ended, in turn, and the ids of damaged jobs, which
 * were removed.
 *
 * `read` returns a job; nil when it is damaged or not there. `leave` takes a job out of the lists of its state: one of
 * `wait`, `die` and the deletion of its hash must follow. `remove` takes a damaged job out of the lists of all names.
 */
const begin = `
local prefix, channel = KEYS[1], ARGV[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local tooOften, damaged = {}, {}
local function digits(number) return string.format('%.0f', number) end
local function answer(result) return {result, tooOften, damaged} end
local function whole(text)
  local number = tonumber(text or '')
  if number and number == math.floor(number) and math.abs(number) < 1e16 then return number end
end
local states = {waiting = true, running = true, dead = true}
local function read(id)
  local at = prefix .. 'job:' .. id
  if redis.call('TYPE', at).ok ~= 'hash' then return nil end
  local name, state, due, tries, ends, key, owner = unpack(
    redis.call('HMGET', at, 'name', 'state', 'due', 'tries', 'ends', 'key', 'owner'))
  due, tries, ends = whole(due), whole(tries), whole(ends)
  if not (name and states[state] and due and tries and ends) then return nil end
  return {id = id, at = at, name = name, state = state, due = due, tries = tries, ends = ends, key = key, owner = owner}
end
local function startOf(key) return #key .. ':' .. key .. ':' end
local function leave(job)
  if job.state == 'running' then
    redis.call('ZREM', prefix .. 'running:' .. job.name, job.id)
    redis.call('ZREM', prefix .. 'until', job.id)
    if job.owner then redis.call('SREM', prefix .. 'owner:' .. job.owner, job.id) end
    return
  end
  redis.call('ZREM', prefix .. job.state .. ':' .. job.name, job.id)
  redis.call('ZREM', prefix .. (job.state == 'dead' and 'ended:' or 'due:') .. job.name, job.id)
  if job.key then redis.call('ZREM', prefix .. 'keys:' .. job.name, startOf(job.key) .. job.id) end
end
local function remove(id, foundIn)
  redis.call('DEL', prefix .. 'job:' .. id)
  redis.call('ZREM', prefix .. 'until', id)
  local names = redis.call('SMEMBERS', prefix .. 'names')
  names[#names + 1] = foundIn
  for _, name in ipairs(names) do
    for _, list in ipairs({'due:', 'waiting:', 'running:', 'dead:', 'ended:'}) do
      redis.call('ZREM', prefix .. list .. name, id)
    end
  end
  damaged[#damaged + 1] = id
end
local function wait(job, due)
  redis.call('HSET', job.at, 'state', 'waiting', 'due', due)
  redis.call('HDEL', job.at, 'owner', 'ended')
  redis.call('ZADD', prefix .. 'due:' .. job.name, due, job.id)
  redis.call('ZADD', prefix .. 'waiting:' .. job.name, 0, job.id)
  if job.key then redis.call('ZADD', prefix .. 'keys:' .. job.name, 0, startOf(job.key) .. job.id) end
  local first = redis.call('ZRANGE', prefix .. 'due:' .. job.name, 0, 0)[1]
  if first == job.id then redis.call('PUBLISH', channel, '') end
end
local function trim(name)
  local function drop(ids)
    for _, id in ipairs(ids) do
      redis.call('ZREM', prefix .. 'ended:' .. name, id)
      redis.call('ZREM', prefix .. 'dead:' .. name, id)
      redis.call('DEL', prefix .. 'job:' .. id)
    end
  end
  local oldest = '(' .. digits(now - ${keepDeadMs})
  drop(redis.call('ZRANGEBYSCORE', prefix .. 'ended:' .. name, '-inf', oldest))
  local excess = redis.call('ZCARD', prefix .. 'ended:' .. name) - ${maxDead}
  if excess > 0 then drop(redis.call('ZRANGE', prefix .. 'ended:' .. name, 0, excess - 1)) end
end
local function die(job, reason)
  redis.call('HSET', job.at, 'state', 'dead', 'tries', job.tries + 1, 'error', reason, 'ended', now)
  redis.call('HDEL', job.at, 'owner')
  redis.call('ZADD', prefix .. 'dead:' .. job.name, 0, job.id)
  redis.call('ZADD', prefix .. 'ended:' .. job.name, now, job.id)
  trim(job.name)
end`

/** Adds a job: '' stands for no data and for no key. Returns the id. Its first change is an addition. */
const add = `
local function add(name, data, key, due)
  local keys = prefix .. 'keys:' .. name
  while key ~= '' do
    local start = startOf(key)
    local found = redis.call('ZRANGEBYLEX', keys, '[' .. start, '(' .. start .. '\\255', 'LIMIT', 0, 1)[1]
    if not found then break end
    local job = read(string.sub(found, #start + 1))
    if job and job.state == 'waiting' then return job.id end
    redis.call('ZREM', keys, found)
  end
  local id = string.format('%016.0f', redis.call('INCR', prefix .. 'id'))
  local job = {id = id, at = prefix .. 'job:' .. id, name = name, key = key ~= '' and key}
  redis.call('HSET', job.at, 'name', name, 'tries', 0, 'ends', 0)
  if data ~= '' then redis.call('HSET', job.at, 'data', data) end
  if job.key then redis.call('HSET', job.at, 'key', key) end
  redis.call('SADD', prefix .. 'names', name)
  wait(job, due)
  return id
end`

/**
 * `giveBack` makes a job of an owner wait, or ends it when this counts as an end of its process for the last time.
 * `look` renews an owner, and gives back the jobs of those that are gone and the jobs whose try should be over. It
 * begins with a removal.
 */
const owners = `
local function giveBack(owner, id, counts)
  redis.call('SREM', prefix .. 'owner:' .. owner, id)
  local job = read(id)
  if not job then return remove(id) end
  if job.state ~= 'running' or job.owner ~= owner then return end
  leave(job)
  if counts then
    job.ends = job.ends + 1
    redis.call('HSET', job.at, 'ends', job.ends)
  end
  if not counts or job.ends < ${maxEnds} then return wait(job, job.due) end
  die(job, '${endedTooOften}')
  tooOften[#tooOften + 1] = id
  tooOften[#tooOften + 1] = job.name
end
local function release(owner, counts)
  for _, id in ipairs(redis.call('SMEMBERS', prefix .. 'owner:' .. owner)) do giveBack(owner, id, counts) end
  redis.call('ZREM', prefix .. 'owners', owner)
end
local function look(owner)
  local looked = whole(redis.call('GET', prefix .. 'looked'))
  redis.call('DEL', prefix .. 'looked')
  redis.call('SET', prefix .. 'looked', digits(now))
  redis.call('ZADD', prefix .. 'owners', now + ${ownerMs}, owner)
  if not looked or looked > now or now - looked > ${longestGapMs} then
    for _, each in ipairs(redis.call('ZRANGE', prefix .. 'owners', 0, -1)) do
      redis.call('ZADD', prefix .. 'owners', now + ${ownerMs}, each)
    end
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'until', '-inf', now)) do
      redis.call('ZADD', prefix .. 'until', now + ${ownerMs}, id)
    end
    return
  end
  for _, each in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'owners', '-inf', now)) do release(each, true) end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'until', '-inf', now)) do
    local job = read(id)
    redis.call('ZREM', prefix .. 'until', id)
    if job and job.owner then giveBack(job.owner, id, true) end
  end
end`

/** ARGV: the name, data or '', key or '', when it is due or '' for now. Returns the id. */
const enqueue = `${begin}${add}
return answer(add(ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '' and now or ARGV[5]))`

/**
 * ARGV: the owner, the maximum of jobs, and each name with the milliseconds of a try, '' for no limit. Returns in how
 * many milliseconds the next job is due or a try should be over, '' when there is none, and id, name, number of the try
 * and data of each job.
 */
const claim = `${begin}${owners}
local owner, most, due, limits = ARGV[2], tonumber(ARGV[3]), {}, {}
look(owner)
for at = 4, #ARGV, 2 do
  limits[ARGV[at]] = tonumber(ARGV[at + 1])
  local found = redis.call('ZRANGEBYSCORE', prefix .. 'due:' .. ARGV[at], '-inf', now, 'WITHSCORES', 'LIMIT', 0, most)
  for each = 1, #found, 2 do
    due[#due + 1] = {id = found[each], ms = tonumber(found[each + 1]), name = ARGV[at]}
  end
end
table.sort(due, function(a, b) return a.ms < b.ms or (a.ms == b.ms and a.id < b.id) end)
local jobs, bytes = {}, 0
for at = 1, math.min(most, #due) do
  local job = read(due[at].id)
  if not job or job.state ~= 'waiting' or job.name ~= due[at].name then
    remove(due[at].id, due[at].name)
  elseif bytes < ${claimedBytes} then
    leave(job)
    redis.call('HSET', job.at, 'state', 'running', 'owner', owner)
    redis.call('ZADD', prefix .. 'running:' .. job.name, 0, job.id)
    redis.call('SADD', prefix .. 'owner:' .. owner, job.id)
    local limit = limits[job.name]
    if limit then redis.call('ZADD', prefix .. 'until', now + limit + ${reportMs}, job.id) end
    local data = redis.call('HGET', job.at, 'data')
    jobs[#jobs + 1] = {job.id, job.name, job.tries + 1, data}
    bytes = bytes + #(data or '')
  end
end
local first
local function firstIn(list)
  local ms = tonumber(redis.call('ZRANGE', prefix .. list, 0, 0, 'WITHSCORES')[2] or '')
  if ms and (not first or ms < first) then first = ms end
end
firstIn('until')
for at = 4, #ARGV, 2 do firstIn('due:' .. ARGV[at]) end
return answer({first and digits(first - now) or '', jobs})`

/**
 * ARGV: the owner, the ids that it knows to have. Others that Redis has for it are given back: the reply to their claim
 * was lost.
 */
const beat = `${begin}${owners}
local held = {}
for at = 3, #ARGV do held[ARGV[at]] = true end
look(ARGV[2])
for _, id in ipairs(redis.call('SMEMBERS', prefix .. 'owner:' .. ARGV[2])) do
  if not held[id] then giveBack(ARGV[2], id, false) end
end
return answer(false)`

/** ARGV: the owner, the day. Then for each try: id, `done`, `back`, `retry` or `dead`, milliseconds, the error. */
const settle = `${begin}
local function settle(job, ending, delay, reason)
  leave(job)
  if ending == 'done' then
    redis.call('DEL', job.at)
    redis.call('HINCRBY', prefix .. 'done:' .. ARGV[3], job.name, 1)
    redis.call('EXPIRE', prefix .. 'done:' .. ARGV[3], ${keepDoneS})
  elseif ending == 'back' then
    wait(job, job.due)
  elseif ending == 'retry' then
    redis.call('HSET', job.at, 'tries', job.tries + 1, 'ends', 0, 'error', reason)
    wait(job, now + delay)
  else
    die(job, reason)
  end
end
for at = 4, #ARGV, 4 do
  local job = read(ARGV[at])
  if job and job.state == 'running' and job.owner == ARGV[2] then
    settle(job, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
  end
end
return answer(false)`

/** ARGV: the owner, whether this counts as an end of its process. */
const release = `${begin}${owners}
release(ARGV[2], ARGV[3] == '1')
return answer(false)`

/** `nextOf` returns the next time of a schedule, as text, and its spec; nil when it is not known or is damaged. */
const schedules = `
local function nextOf(name)
  local stored = redis.call('HGET', prefix .. 'schedules', name) or ''
  local _, _, next, spec = string.find(stored, '^(%-?%d+) (.*)$')
  return next, spec
end
local function setNext(name, next, spec)
  redis.call('HSET', prefix .. 'schedules', name, next .. ' ' .. spec)
end`

/** ARGV: the name, the spec, its next time. Returns the next time. */
const plan = `${begin}${schedules}
local next, spec = nextOf(ARGV[2])
if spec == ARGV[3] and whole(next) then return answer(next) end
setNext(ARGV[2], ARGV[4], ARGV[3])
return answer(ARGV[4])`

/** ARGV: the name, its time, its next time, whether it runs. Returns 1, or 0 when its time was another one. */
const advance = `${begin}${add}${schedules}
local next, spec = nextOf(ARGV[2])
if next ~= ARGV[3] then return answer(0) end
setNext(ARGV[2], ARGV[4], spec)
if ARGV[5] == '1' then add(ARGV[2], '', '${scheduleKey}', now) end
return answer(1)`

/** ARGV: the day. Returns name and numbers by state of each name, in turn, and name and number of those done. */
const counts = `${begin}
local counts = {}
for _, name in ipairs(redis.call('SMEMBERS', prefix .. 'names')) do
  counts[#counts + 1] = name
  for _, list in ipairs({'waiting:', 'running:', 'dead:'}) do
    counts[#counts + 1] = redis.call('ZCARD', prefix .. list .. name)
  end
end
return answer({counts, redis.call('HGETALL', prefix .. 'done:' .. ARGV[2])})`

/**
 * ARGV: the name, the state, the id below which to begin or '', how many to skip, the maximum. Returns the jobs,
 * newest first, each as id, tries, when it is due or has died, key and error; of a damaged one only the id.
 */
const page = `${begin}
local from = ARGV[4] == '' and '+' or '(' .. ARGV[4]
local rows = {}
local list = prefix .. ARGV[3] .. ':' .. ARGV[2]
for at, id in ipairs(redis.call('ZREVRANGEBYLEX', list, from, '-', 'LIMIT', ARGV[5], ARGV[6])) do
  local job = read(id)
  rows[at] = {id}
  if not job or job.state ~= ARGV[3] or job.name ~= ARGV[2] then
    remove(id, ARGV[2])
  else
    local ended, reason = unpack(redis.call('HMGET', job.at, 'ended', 'error'))
    local ms = job.state == 'dead' and whole(ended) or job.due
    rows[at] = {id, digits(job.tries), digits(ms), job.key or '', reason or ''}
  end
end
return answer(rows)`

/** ARGV: the id. Returns 1, or 0 when no such job is dead or waits. */
const retry = `${begin}
local job = read(ARGV[2])
if not job or job.state == 'running' then return answer(0) end
leave(job)
if job.state == 'dead' then
  redis.call('HSET', job.at, 'tries', 0)
  redis.call('HDEL', job.at, 'error')
end
redis.call('HSET', job.at, 'ends', 0)
wait(job, now)
return answer(1)`

/** ARGV: the id. Returns 1, or 0 when no such job is dead or waits. */
const discard = `${begin}
local job = read(ARGV[2])
if not job or job.state == 'running' then return answer(0) end
leave(job)
redis.call('DEL', job.at)
return answer(1)`

/** ARGV: the owner, the ids of its jobs that are damaged. */
const drop = `${begin}
for at = 3, #ARGV do
  redis.call('SREM', prefix .. 'owner:' .. ARGV[2], ARGV[at])
  remove(ARGV[at])
end
return answer(false)`

/** Removes dead jobs that are too old, and names without jobs. */
const sweep = `${begin}
for _, name in ipairs(redis.call('SMEMBERS', prefix .. 'names')) do
  trim(name)
  local count = 0
  for _, list in ipairs({'waiting:', 'running:', 'dead:'}) do
    count = count + redis.call('ZCARD', prefix .. list .. name)
  end
  if count == 0 then redis.call('SREM', prefix .. 'names', name) end
end
return answer(false)`

/** Prepares the scripts of jobs for a client. */
export function createJobScripts(redis: Redis) {
  return {
    enqueue: redis.script(enqueue),
    claim: redis.script(claim),
    beat: redis.script(beat),
    settle: redis.script(settle),
    release: redis.script(release),
    plan: redis.script(plan),
    advance: redis.script(advance),
    counts: redis.script(counts),
    page: redis.script(page),
    retry: redis.script(retry),
    discard: redis.script(discard),
    drop: redis.script(drop),
    sweep: redis.script(sweep),
  }
}
