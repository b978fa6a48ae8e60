/**
 * The list of all nodes: what each tells of itself, and whether it is still there by the clock of the shared engine.
 */
import type { Summary } from '../metrics/processes.ts'
import { integerIn, listIn, textIn, type Reply } from '../redis/reply.ts'
import { positionIn, type Position } from './position.ts'

/** `behind`: it is not as the others, and `problem` says why. */
export type NodeState = 'starting' | 'ready' | 'behind' | 'stopping'

/** What a node tells. */
export interface NodeEntry extends Summary {
  /** `HOSTNAME:PORT`; two may have the same. */
  readonly name: string
  readonly state: NodeState
  readonly problem: string
  readonly version: string
  readonly pid: number
  readonly per_second: number
  /** The number of the last change that it has taken up. */
  readonly seq: number
  readonly stamp: string
}

/** A node as the monitor lists it. */
export interface ListedNode extends Omit<NodeEntry, 'state' | 'stamp'> {
  /**
   * `gone`: it was not heard of for five seconds, and did not say that it stops. While the shared engine is away the node that
   * lists is `cut off`, and of the others nothing is known: `unknown`.
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
  /** The engine's time in milliseconds. */
  readonly nowMs: number
  readonly position: Position
  readonly nodes: readonly SeenNode[]
}

/** How long a node may be silent, in milliseconds. */
export const liveMs = 5000
/** After so many milliseconds a node has missed two beats. */
const missedMs = 2500
/** How long one that is gone is listed, in milliseconds. */
export const listedMs = 3_600_000

/** Whether a node is there. */
export function isLive({ agoMs }: SeenNode): boolean {
  return agoMs < liveMs
}

/**
 * Whether a node may still say that it has taken up a change. One that was killed has no connection any more; one that
 * hangs has.
 */
export function mayAnswer({ agoMs, listens }: SeenNode): boolean {
  return listens || agoMs < missedMs
}

/** Reads what the script `beat` gives. Entries that no node of this kind wrote are left out. */
export function beatIn(reply: Reply, ownPrefix: string): Beat {
  const [time, seq, stamp, nodes, seen, listeners] = listIn(reply)
  const nowMs = integerIn(time)
  const seenAt = scoresIn(seen)
  const counts = new Map(pairsOf(listIn(listeners)).map(([channel, count]) => [textIn(channel), integerIn(count)]))
  const found = pairsOf(listIn(nodes)).flatMap(([name, text]): SeenNode[] => {
    const id = textIn(name)
    const entry = entryIn(textIn(text))
    const at = seenAt.get(id)
    if (entry === undefined || at === undefined) return []
    return [{ id, entry, agoMs: Math.max(0, nowMs - at), listens: (counts.get(ownPrefix + id) ?? 0) > 0 }]
  })
  return { nowMs, position: positionIn(seq, stamp), nodes: found }
}

/** The ids of those that are there, from a list of when each was seen: the newest is there. */
export function liveIds(seen: Reply | undefined): string[] {
  const scores = scoresIn(seen)
  const newest = Math.max(...scores.values())
  return [...scores].filter(([, at]) => newest - at < liveMs).map(([id]) => id)
}

/**
 * The list for the monitor, by name.
 * @param isHeard whether the engine is there
 */
export function listed(nodes: readonly SeenNode[], selfId: string, isHeard: boolean): readonly ListedNode[] {
  // One that was killed and is there again is another node of the same name.
  const back = new Set(nodes.filter(isLive).map(({ entry }) => entry.name))
  const list = nodes.filter((node) => isLive(node) || !back.has(node.entry.name)).map((node): ListedNode => {
    const { stamp: _, ...entry } = node.entry
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

function scoresIn(reply: Reply | undefined): Map<string, number> {
  return new Map(pairsOf(listIn(reply)).map(([id, score]) => [textIn(id), Number(textIn(score))]))
}

function pairsOf(list: readonly Reply[]): [Reply | undefined, Reply | undefined][] {
  return Array.from({ length: list.length / 2 }, (_, at) => [list[2 * at], list[2 * at + 1]])
}

const numbers = ['pid', 'processes', 'uptime_s', 'requests', 'errors', 'active', 'rss_mb', 'loop_p99_ms', 'per_second', 'seq']
const texts = ['name', 'state', 'problem', 'version', 'stamp']

function entryIn(text: string): NodeEntry | undefined {
  try {
    const entry = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    const isOne = numbers.every((name) => typeof entry?.[name] === 'number') && texts.every((name) => typeof entry?.[name] === 'string')
    return isOne ? (entry as unknown as NodeEntry) : undefined // Every field was looked at.
  } catch {
    return undefined
  }
}
