/**
 * The list of all nodes: what each says of itself, and whether it is there by the clock of the shared engine.
 */
import type { Summary } from '../metrics/processes.ts'
import { integerIn, listIn, textIn, type Reply } from '../redis/reply.ts'

/** `behind`: it could not apply the latest state, and `problem` says why. */
export type NodeState = 'starting' | 'ready' | 'behind' | 'stopping'

/** What a node says of itself. */
export interface NodeEntry extends Summary {
  /** `HOSTNAME:PORT`; two may have the same. */
  readonly name: string
  readonly state: NodeState
  readonly problem: string
  readonly version: string
  readonly pid: number
  readonly per_second: number
  /** The version and the stamp of the state that it has applied. */
  readonly seq: number
  readonly stamp: string
  /** The version of the state that it has tried to apply last. */
  readonly tried: number
}

/** A node as the monitor lists it. */
export interface ListedNode extends Omit<NodeEntry, 'state' | 'stamp' | 'tried'> {
  /**
   * `gone`: it was not heard of for five seconds, and did not say that it stops. While the shared engine is away the
   * node that lists is `cut off`, and the others are `unknown`.
   */
  readonly state: NodeState | 'gone' | 'cut off' | 'unknown'
  /** Seconds since it was heard of. */
  readonly seen_s: number
  /** Whether it is the one that lists. */
  readonly self: boolean
}

/** A node as the others see it. */
export interface SeenNode {
  readonly id: string
  readonly entry: NodeEntry
  /** Milliseconds since it was heard of. */
  readonly agoMs: number
  /** Whether it has a connection on which it hears of changes. */
  readonly listens: boolean
}

/** What a beat comes back with. */
export interface Beat {
  /** The engine's time, in milliseconds since 1970. */
  readonly nowMs: number
  /** The stamp of the state in the engine; '' where there is none. */
  readonly stamp: string
  readonly nodes: readonly SeenNode[]
  /** Whether the node that beat was not in the list. */
  readonly isNew: boolean
}

/** How long a node may be silent, in milliseconds. */
export const liveMs = 5000
/** After so many milliseconds a node has missed two beats. */
const missedMs = 2500
/** How long one that is gone is listed, in milliseconds. */
export const listedMs = 3_600_000

/**
 * Says that a node is there. KEYS: the state, the nodes, when each was seen. ARGV: its id, what it says of itself,
 * milliseconds after which one that is gone is forgotten, what the nodes' own channels begin with, and where it has
 * applied a state the channel of all and a message for it.
 *
 * When nobody was seen for a while, the engine stood still, or its clock was set: that time counts for no node.
 * Gives the time, the stamp, the nodes in pairs, when each was seen, who listens to its channel, and 1 where the node was
 * not in the list.
 */
export const beatScript = `
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)
local seen = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')
local still = time - tonumber(seen[#seen] or time)
if still < 0 or (still > 2500 and still < 60000) then
  local shift = still < 0 and still or still - 1000
  for at = 1, #seen, 2 do redis.call('ZADD', KEYS[3], tonumber(seen[at + 1]) + shift, seen[at]) end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', time - tonumber(ARGV[3]))) do
  redis.call('HDEL', KEYS[2], id)
  redis.call('ZREM', KEYS[3], id)
end
local isNew = redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
redis.call('ZADD', KEYS[3], time, ARGV[1])
if ARGV[5] then redis.call('PUBLISH', ARGV[5], ARGV[6]) end
local channels = {}
for _, id in ipairs(redis.call('HKEYS', KEYS[2])) do channels[#channels + 1] = ARGV[4] .. id end
return {
  time, redis.call('HGET', KEYS[1], 'stamp'),
  redis.call('HGETALL', KEYS[2]),
  redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'),
  redis.call('PUBSUB', 'NUMSUB', unpack(channels)),
  isNew,
}`

/** KEYS: the nodes, when each was seen. ARGV: an id. */
export const leaveScript = `
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1`

/** The names under which the nodes keep what they share. */
export interface NodeKeys {
  /** A hash: the desired state. */
  readonly state: string
  /** A hash: what each node says of itself. */
  readonly nodes: string
  /** A sorted set: when each was seen. */
  readonly seen: string
  /** The channel of all. */
  readonly channel: string
  /** What the channel of each node begins with; its id follows. */
  readonly own: string
}

/**
 * @param prefix what every key begins with, such as `svc:`
 * @param place what the name of every channel begins with: PUBLISH knows no databases
 */
export function nodeKeys(prefix: string, place: string): NodeKeys {
  return {
    state: `${prefix}nodes:state`,
    nodes: `${prefix}nodes`,
    seen: `${prefix}nodes:seen`,
    channel: `${place}nodes`,
    own: `${place}nodes:`,
  }
}

/**
 * The nodes that an engine had listed before it lost its list, but for those that are listed again. Each may be there as
 * long as one that is silent.
 * @param before the nodes of the last list
 * @param elapsedMs since the last list
 */
export function notListedAgain(before: readonly SeenNode[], now: readonly SeenNode[], elapsedMs: number): SeenNode[] {
  const listed = new Set(now.map(({ id }) => id))
  return before
    .filter((node) => isLive(node) && !listed.has(node.id))
    .map((node) => ({ ...node, agoMs: node.agoMs + elapsedMs, listens: false }))
    .filter(isLive)
}

/** Whether a node is there. */
export function isLive({ agoMs }: SeenNode): boolean {
  return agoMs < liveMs
}

/**
 * Whether a node may still apply a state. One that was killed has no connection any more; one that hangs has.
 */
export function mayApply({ agoMs, listens }: SeenNode): boolean {
  return listens || agoMs < missedMs
}

/**
 * The list for the monitor, by name.
 * @param isHeard whether the engine is there
 */
export function listed(nodes: readonly SeenNode[], selfId: string, isHeard: boolean): readonly ListedNode[] {
  // One that was killed and is there again is another node of the same name.
  const back = new Set(nodes.filter(isLive).map(({ entry }) => entry.name))
  const list = nodes.filter((node) => isLive(node) || !back.has(node.entry.name)).map((node): ListedNode => {
    const { tried, stamp, ...entry } = node.entry
    const heard = isLive(node) ? entry.state : 'gone'
    return {
      ...entry,
      state: isHeard ? heard : node.id === selfId ? 'cut off' : 'unknown',
      seen_s: Math.round(node.agoMs / 100) / 10,
      self: node.id === selfId,
    }
  })
  return list.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.pid - b.pid)
}

/** Reads what the script gives. Entries that no node of this kind wrote are left out. */
export function beatIn(reply: Reply, ownPrefix: string): Beat {
  const [time, stamp, nodes, seen, listeners, isNew] = listIn(reply)
  const nowMs = integerIn(time)
  const seenAt = new Map(pairsOf(seen).map(([id, score]) => [textIn(id), Number(textIn(score))]))
  const counts = new Map(pairsOf(listeners).map(([channel, count]) => [textIn(channel), integerIn(count)]))
  const found = pairsOf(nodes).flatMap(([name, text]): SeenNode[] => {
    const id = textIn(name)
    const entry = entryIn(textIn(text))
    const at = seenAt.get(id)
    if (entry === undefined || at === undefined) return []
    return [{ id, entry, agoMs: Math.max(0, nowMs - at), listens: (counts.get(ownPrefix + id) ?? 0) > 0 }]
  })
  return { nowMs, stamp: stamp === null ? '' : textIn(stamp), nodes: found, isNew: isNew === 1 }
}

function pairsOf(reply: Reply | undefined): [Reply | undefined, Reply | undefined][] {
  const list = listIn(reply)
  return Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at], list[2 * at + 1]])
}

const numbers = [
  ...['pid', 'processes', 'uptime_s', 'requests', 'errors', 'active', 'rss_mb', 'loop_p99_ms', 'per_second'],
  ...['seq', 'tried'],
]
const texts = ['name', 'state', 'problem', 'version', 'stamp']

function entryIn(text: string): NodeEntry | undefined {
  try {
    const entry = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    const isOne =
      numbers.every((name) => typeof entry?.[name] === 'number') && texts.every((name) => typeof entry?.[name] === 'string')
    return isOne ? (entry as unknown as NodeEntry) : undefined // Every field was looked at.
  } catch {
    return undefined
  }
}
