/**
 * The list of all nodes in the shared engine: the entry that each node writes about itself, and when it was last seen
 * by the clock of the engine.
 */
import type { Summary } from '../metrics/processes.ts'
import { integerIn, listIn, textIn, type Reply } from '../redis/reply.ts'

/** `behind`: the node could not apply the latest state; `problem` says why. */
type NodeState = 'starting' | 'ready' | 'behind' | 'stopping'

/** The entry that a node writes about itself. */
export interface NodeEntry extends Summary {
  /** `HOSTNAME:PORT`; not necessarily unique. */
  readonly name: string
  readonly state: NodeState
  readonly problem: string
  readonly version: string
  readonly pid: number
  readonly per_second: number
  /** Version and stamp of the state that the node has applied. */
  readonly seq: number
  readonly stamp: string
  /** The version of the last state that the node has tried to apply. */
  readonly tried: number
}

/** A node in the list of the monitor. */
export interface ListedNode extends Omit<NodeEntry, 'state' | 'stamp' | 'tried'> {
  /**
   * `gone`: the node was not seen for five seconds and had not announced its stop. While the shared engine is away, the
   * node that shows the list is `cut off`, and the others are `unknown`.
   */
  readonly state: NodeState | 'gone' | 'cut off' | 'unknown'
  /** Seconds since the node was last seen. */
  readonly seen_s: number
  /** Whether this is the node that shows the list. */
  readonly self: boolean
}

/** A node from the view of the others. */
export interface SeenNode {
  readonly id: string
  readonly entry: NodeEntry
  /** Milliseconds since the node was last seen. */
  readonly agoMs: number
  /** Whether it has a connection that receives messages. */
  readonly listens: boolean
}

/** The reply to a beat. */
interface Beat {
  /** The engine's time, in milliseconds since 1970. */
  readonly nowMs: number
  /** The stamp of the state in the engine; '' when there is none. */
  readonly stamp: string
  readonly nodes: readonly SeenNode[]
  /** Whether this node was not in the list before. */
  readonly isNew: boolean
}

/** A node not seen for this many milliseconds is gone. */
export const liveMs = 5000
/** A node not seen for this many milliseconds has missed two beats. */
const missedMs = 2500
/** How long a node that is gone stays in the list, in milliseconds. */
export const listedMs = 3_600_000

/**
 * Writes the entry of a node and returns the list. KEYS: the state, the nodes, when each was seen. ARGV: id and entry
 * of the node, milliseconds after which a node that is gone is removed, the prefix of the nodes' channels, and, when
 * the node has applied a state, the common channel and a message for it.
 *
 * When no node was seen for a while, the engine was suspended or its clock was set: that time counts against no node.
 * Returns the time, the stamp, ids and entries in pairs, when each was seen, the number of listeners of each node's
 * channel, and 1 when the node was not in the list.
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

/** The names of keys and channels of the nodes. */
export type NodeKeys = ReturnType<typeof nodeKeys>

/**
 * Returns the names of keys and channels.
 * @param prefix the prefix of every key, such as `svc:`
 * @param channelPrefix the prefix of every channel, different for each database: PUBLISH ignores databases
 */
export function nodeKeys(prefix: string, channelPrefix: string) {
  return {
    /** A hash: the desired state. */
    state: `${prefix}nodes:state`,
    /** A hash: the entry of each node. */
    nodes: `${prefix}nodes`,
    /** A sorted set: when each node was seen. */
    seen: `${prefix}nodes:seen`,
    /** The channel that all nodes listen to. */
    channel: `${channelPrefix}nodes`,
    /** The prefix of the channel of each node; its id follows. */
    nodeChannel: `${channelPrefix}nodes:`,
  }
}

/**
 * Returns the nodes listed before the engine lost its list that have not written their entries again. They count as
 * live as long as a silent node does.
 * @param before the nodes of the last list
 * @param elapsedMs milliseconds since the last list
 */
export function notListedAgain(before: readonly SeenNode[], now: readonly SeenNode[], elapsedMs: number): SeenNode[] {
  const listed = new Set(now.map(({ id }) => id))
  return before
    .filter((node) => isLive(node) && !listed.has(node.id))
    .map((node) => ({ ...node, agoMs: node.agoMs + elapsedMs, listens: false }))
    .filter(isLive)
}

/** Whether a node is live. */
export function isLive({ agoMs }: SeenNode): boolean {
  return agoMs < liveMs
}

/** Whether a node may still apply a state. A killed node has no connection; a hung node still has one. */
export function mayApply({ agoMs, listens }: SeenNode): boolean {
  return listens || agoMs < missedMs
}

/**
 * Makes the list for the monitor, sorted by name.
 * @param isConnected whether the engine can be used
 */
export function listed(nodes: readonly SeenNode[], selfId: string, isConnected: boolean): readonly ListedNode[] {
  // A node that was killed and started again has a new id and the same name.
  const liveNames = new Set(nodes.filter(isLive).map(({ entry }) => entry.name))
  const list = nodes.filter((node) => isLive(node) || !liveNames.has(node.entry.name)).map((node): ListedNode => {
    const { tried, stamp, ...entry } = node.entry
    const state = isLive(node) ? entry.state : 'gone'
    return {
      ...entry,
      state: isConnected ? state : node.id === selfId ? 'cut off' : 'unknown',
      seen_s: Math.round(node.agoMs / 100) / 10,
      self: node.id === selfId,
    }
  })
  return list.sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }) || a.pid - b.pid)
}

/** Parses the reply of `beatScript`. Skips entries that are not in the format of this version. */
export function beatIn(reply: Reply, channelPrefix: string): Beat {
  const [time, stamp, nodes, seen, listeners, isNew] = listIn(reply)
  const nowMs = integerIn(time)
  const seenAt = new Map(pairsOf(seen).map(([id, score]) => [textIn(id), Number(textIn(score))]))
  const counts = new Map(pairsOf(listeners).map(([channel, count]) => [textIn(channel), integerIn(count)]))
  const found = pairsOf(nodes).flatMap(([name, text]): SeenNode[] => {
    const id = textIn(name)
    const entry = entryIn(textIn(text))
    const at = seenAt.get(id)
    if (entry === undefined || at === undefined) return []
    return [{ id, entry, agoMs: Math.max(0, nowMs - at), listens: (counts.get(channelPrefix + id) ?? 0) > 0 }]
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
    const areAll = (names: readonly string[], type: string): boolean =>
      names.every((name) => typeof entry?.[name] === type)
    const isEntry = areAll(numbers, 'number') && areAll(texts, 'string')
    return isEntry ? (entry as unknown as NodeEntry) : undefined // Every field has been checked.
  } catch {
    return undefined
  }
}
