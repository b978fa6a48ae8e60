/**
 * The channels of the Redis broker. One script publishes an event, one reads events, and PUBLISH on a channel of
 * the same name notifies the listeners.
 *
 * The events of a channel are a stream. Their ids are microseconds since 1970, so the age of an event is a difference
 * of ids. A separate hash holds `last`, the id of the newest event; `gone`, the id of the newest dropped event; and,
 * from the first event on, `age` and `life`: how long events and the unused channel are kept.
 *
 * Each process remembers the newest id that it has seen in each channel. After a reconnection the server may be behind,
 * for example a promoted replica, so the process first checks that the server has these ids.
 *
 * Surprise: the server may evict either key when its memory is full. No event may be skipped silently: without the hash
 * the stream is deleted too, and without the stream all events up to `last` count as dropped.
 */
import { performance } from 'node:perf_hooks'
import { isJsonLine } from '../base/json-text.ts'
import type { ChannelEvent, ChannelListener, ChannelRead, SourceLimits, Unsubscribe } from '../events/broker.ts'
import { eventText, lifeOf, limitArguments, type BrokerContext } from './broker-context.ts'
import type { RedisScript } from './client.ts'
import { answered } from './errors.ts'
import { Follower } from './follower.ts'
import { decoded, encoded, integerIn, listIn, textIn, type Reply } from './reply.ts'

/** The approximate size of one reply. A script blocks the whole server, and the client accepts replies up to 64 MiB. */
const pieceBytes = 2 ** 20
const pieceEvents = 5000

/**
 * `drop` deletes all events up to the last of a list and returns its id. `tooOld` returns the newest event that is too
 * old; it checks the oldest first, since XREVRANGE walks through the whole stream when there is none. Always format
 * numbers with `digits`, because Lua would write long ids with an exponent.
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
 * KEYS: events, state. ARGV: the maximum number of events, `age` in microseconds, `life` in milliseconds, the channel
 * of PUBLISH, the tag of the call, the text. Returns the id of the event.
 */
const publishScript = `${begin}
local most, age, life = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local last, gone = unpack(redis.call('HMGET', KEYS[2], 'last', 'gone'))
local count = redis.call('XLEN', KEYS[1])
last = tonumber(last)
if not last then
  if count > 0 then redis.call('DEL', KEYS[1]) end
  last, count = now - 1, 0
end
gone = count == 0 and last or tonumber(gone) or last
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
 * KEYS: events, state. ARGV: the id to read after, or '' for no events; the `life` of a channel without events, in
 * milliseconds; the approximate maximum of bytes and the maximum of events to return; the channel of PUBLISH when the
 * id is known to have been in this channel, else ''. Returns the newest id, whether there is a gap, whether there are
 * more events, then id and text of each event.
 *
 * A server that lacks a known id without having dropped it was replaced by one that is behind, or has lost data. What
 * else it has lost is unknown, so the channel restarts after the id, with a gap for every cursor.
 */
const readScript = `${begin}
local last, gone, age, life = unpack(redis.call('HMGET', KEYS[2], 'last', 'gone', 'age', 'life'))
last, age, life = tonumber(last), tonumber(age), tonumber(life) or ARGV[2]
local since, isKnown = tonumber(ARGV[1]), ARGV[5] ~= ''
local function beginAt(id)
  last, gone = id, id
  redis.call('HSET', KEYS[2], 'last', digits(last), 'gone', digits(gone), 'life', life)
  redis.call('DEL', KEYS[1])
  live(life)
end
local function isLost()
  if since == last or since <= gone then return false end
  return since > last or #redis.call('XRANGE', KEYS[1], digits(since), digits(since), 'COUNT', 1) == 0
end
if not last then
  beginAt(isKnown and math.max(now - 1, since + 1) or now - 1)
  if isKnown then redis.call('PUBLISH', ARGV[5], '') end
elseif redis.call('PTTL', KEYS[2]) < life / 2 then
  live(life)
end
gone = tonumber(gone) or last
if isKnown and isLost() then
  beginAt(math.max(now, last + 1, since + 1))
  redis.call('PUBLISH', ARGV[5], '')
end
if not since or since == last then return {digits(last), 0, 0} end
if since > last then return {digits(last), 1, 0} end
local old = age and tooOld(age) or {}
if #old > 0 then
  gone = drop(old)
  redis.call('HSET', KEYS[2], 'gone', digits(gone))
elseif gone < last and redis.call('XLEN', KEYS[1]) == 0 then
  gone = last
  redis.call('HSET', KEYS[2], 'gone', digits(gone))
end
local gap = since < gone
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

/** The ids of channels unused for this many milliseconds are forgotten. */
const rememberedMs = 3_600_000
/** How many channels are checked in parallel. */
const checkedAtOnce = 1000

/** See `Broker` for each function. */
export class RedisChannels {
  readonly #context: BrokerContext
  readonly #publishing: RedisScript
  readonly #reading: RedisScript
  /** The newest id of each channel that the server has confirmed to this process, and when. */
  readonly #seen = new Map<string, { readonly id: number; readonly atMs: number }>()
  /** Ids to check on the current connection. */
  #unchecked: (readonly [name: string, id: number])[] = []
  #isChecking = false
  readonly #stopWatching: () => void

  constructor(context: BrokerContext) {
    this.#context = context
    this.#publishing = context.redis.script(publishScript)
    this.#reading = context.redis.script(readScript)
    this.#stopWatching = context.redis.onState((state) => {
      if (state !== 'ready') return
      for (const [name, { id }] of this.#seen) this.#unchecked.push([name, id])
      void this.#check()
    })
  }

  publish(name: string, text: string, limits: SourceLimits): Promise<number> {
    const { calls, onProblem } = this.#context
    return calls.run(async (tag) => {
      const values = [...limitArguments(limits), this.#pubSubOf(name), tag, eventText(text)]
      const reply = await answered('an event', this.#publishing.run(this.#keysOf(name), ...values), onProblem)
      return this.#record(name, integerIn(reply))
    })
  }

  read(name: string, since: number | undefined): Promise<ChannelRead> {
    return this.#context.calls.run(() => this.#read(name, since, false))
  }

  subscribe(name: string, hear: ChannelListener): Promise<Unsubscribe> {
    return this.#context.calls.run(() => this.#subscribe(name, hear))
  }

  /** Forgets unused channels, and repeats failed checks. */
  sweep(): void {
    const nowMs = performance.now()
    for (const [name, { atMs }] of this.#seen) if (nowMs - atMs > rememberedMs) this.#seen.delete(name)
    void this.#check()
  }

  close(): void {
    this.#stopWatching()
  }

  /** Records the newest id of a channel, and returns it. */
  #record(name: string, id: number): number {
    this.#seen.set(name, { id, atMs: performance.now() })
    return id
  }

  /** Checks that the server has the newest ids. The next connection or sweep repeats failed checks. */
  async #check(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    for (let hasFailed = false; !hasFailed && this.#unchecked.length > 0; ) {
      const some = this.#unchecked.splice(0, checkedAtOnce)
      const results = await Promise.allSettled(some.map(([name, id]) => this.#readPiece(name, id, true, 0)))
      const failed = some.filter((_, at) => results[at]?.status === 'rejected')
      this.#unchecked.unshift(...failed)
      hasFailed = failed.length > 0
    }
    this.#isChecking = false
  }

  /**
   * Reads in pieces. A later gap or a damaged event discards the events before it.
   * @param isKnown whether this process has seen the id in the channel
   */
  async #read(name: string, since: number | undefined, isKnown: boolean): Promise<ChannelRead> {
    let events: ChannelEvent[] = []
    let isGap = false
    let from = since
    for (;;) {
      const [lastId, gap, more, ...pairs] = await this.#readPiece(name, from, isKnown, pieceEvents)
      if (integerIn(gap) === 1) {
        events = []
        isGap = true
      }
      for (let at = 0; at < pairs.length; at += 2) {
        const event = eventIn(pairs[at], pairs[at + 1])
        if (event !== undefined) events.push(event)
        else {
          this.#context.onProblem(`channel "${name}": an event in the shared engine is damaged and was ignored`)
          events = []
          isGap = true
        }
      }
      if (integerIn(more) === 0) return { events, lastId: this.#record(name, integerIn(lastId)), gap: isGap }
      from = idIn(pairs.at(-2))
    }
  }

  async #readPiece(
    name: string,
    since: number | undefined,
    isKnown: boolean,
    mostEvents: number,
  ): Promise<readonly Reply[]> {
    // No id is greater, and Redis does not accept Infinity.
    const from = since === undefined ? '' : Math.min(since, Number.MAX_SAFE_INTEGER)
    const notified = isKnown ? this.#pubSubOf(name) : ''
    const reply = this.#reading.run(this.#keysOf(name), from, lifeOf(0), pieceBytes, mostEvents, notified)
    return listIn(await answered('a read of events', reply, this.#context.onProblem))
  }

  /** Subscribes first, then delivers the events after the current newest id. */
  async #subscribe(name: string, hear: ChannelListener): Promise<Unsubscribe> {
    const { calls, redis, onProblem } = this.#context
    const lost = `channel "${name}": events were lost in the shared engine, or while it was unreachable`
    const read = (since: number): Promise<ChannelRead> => this.#read(name, since, true)
    const damaged = `channel "${name}": a message of the shared engine is damaged: reading the events instead`
    const [onGap, onDamaged] = [lost, damaged].map((message) => () => onProblem(message)) as [() => void, () => void]
    const follower = new Follower({ calls, read, deliver: hear, onGap, onDamaged })
    const unsubscribe = await answered('a subscription', redis.subscribe(this.#pubSubOf(name), follower), onProblem)
    const end = (): void => {
      follower.close()
      unsubscribe()
    }
    try {
      follower.begin((await this.#read(name, undefined, false)).lastId)
    } catch (error) {
      end()
      throw error
    }
    return end
  }

  #keysOf(name: string): [events: string, state: string] {
    const { prefix } = this.#context
    return [`${prefix}channel:${encoded(name)}`, `${prefix}channel-state:${encoded(name)}`]
  }

  #pubSubOf(name: string): string {
    return `${this.#context.channelPrefix}channel:${encoded(name)}`
  }
}

/** Reads an event; undefined when no server can have published it. */
function eventIn(id: Reply | undefined, text: Reply | undefined): ChannelEvent | undefined {
  const event = { id: idIn(id), text: decoded(textIn(text)) }
  if (event.text === undefined || !Number.isSafeInteger(event.id) || !isJsonLine(event.text)) return undefined
  return { id: event.id, text: event.text }
}

/** The id of a stream entry is a number and `-0`. */
function idIn(id: Reply | undefined): number {
  return Number(textIn(id).split('-', 1)[0])
}
