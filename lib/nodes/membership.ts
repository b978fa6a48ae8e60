/**
 * The membership of a node: writes its entry once a second and keeps the list of nodes.
 *
 * A beat is one command whose reply has the list of nodes and the stamp of the state. Messages only trigger an earlier
 * beat, so a lost message delays a change by a second at most.
 */
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { reasonOf } from '../base/reason.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Redis, RedisScript } from '../redis/client.ts'
import { RedisAwayError } from '../redis/errors.ts'
import type { Unsubscribe } from '../redis/subscriber.ts'
import {
  beatIn,
  beatScript,
  isLive,
  listed,
  listedMs,
  liveMs,
  notListedAgain,
  type ListedNode,
  type NodeEntry,
  type NodeKeys,
  type SeenNode,
} from './node-list.ts'

interface MembershipOptions {
  readonly redis: Redis
  readonly keys: NodeKeys
  /** Of module `server`. */
  readonly log: ModuleLogger
  /** Makes the current entry of the node. */
  readonly entry: () => Promise<NodeEntry>
  /** Called after each beat with the stamp of the state in the engine. */
  readonly onBeat: (stamp: string) => void
  /** Called when another node announces a new state. */
  readonly onNewState: () => void
  /** Called when the connection is lost. */
  readonly onCut: () => void
  /** Called when the engine refuses the entry of this node. */
  readonly onRefused: () => void
}

/** The messages published when a node has written a state, and when a node has applied one. */
export const newState = 'state'
const stateApplied = 'applied'

const beatMs = 1000

/** The membership of one node. Call `open()` to begin. */
export class Membership {
  readonly id = randomUUID()
  readonly #options: MembershipOptions
  readonly #beatScript: RedisScript
  readonly #subscriptions: Unsubscribe[] = []
  /** Called after the next beat. */
  #waiting: (() => void)[] = []
  #nodes: readonly SeenNode[] = []
  /**
   * When the list counts as complete after the engine lost it: until then, some nodes may not have written theirs.
   */
  #listCountsAt = 0
  #listedAt = 0
  /** Whether the last beat failed. The engine may have run it, so this node may already be in a new list. */
  #hasFailed = false
  #refusal = ''
  #engineTime: { readonly ms: number; readonly at: number } | undefined
  #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  /** Whether the next beat announces that this node has tried to apply a state. */
  #announces = false
  #isOver = false
  #stopListening = (): void => {}

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#beatScript = options.redis.script(beatScript)
  }

  /** All nodes seen in the last hour, as of the last beat. */
  get nodes(): readonly SeenNode[] {
    return this.#nodes
  }

  /** Why the engine, though connected, refuses the entry of this node; '' when it accepts it. */
  get refusal(): string {
    return this.#refusal
  }

  /** Returns the engine's time in milliseconds since 1970; this machine's time before the first beat. */
  nowMs(): number {
    const known = this.#engineTime
    return known === undefined ? Date.now() : known.ms + (performance.now() - known.at)
  }

  /** Returns the list for the monitor. */
  list(): readonly ListedNode[] {
    return listed(this.#nodes, this.id, this.#options.redis.state === 'ready')
  }

  /** Starts the beats. Resolves after the first one, even if it failed. */
  async open(): Promise<void> {
    const { redis, onCut } = this.#options
    this.#timer = setInterval(() => void this.beat(), beatMs).unref()
    this.#stopListening = redis.onState((state) => {
      if (state === 'ready') void this.beat()
      else onCut()
    })
    await this.beat()
  }

  /** Writes the entry and reads the list. A call during a beat joins it. Never rejects. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined
      if (this.#announces && !this.#isOver && this.#options.redis.state === 'ready') void this.beat()
    })
    return this.#beating
  }

  /** Announces to the other nodes that this node has tried to apply a state. */
  announce(): void {
    this.#announces = true
    void this.beat()
  }

  /** Resolves after the next beat, which is early when another node has applied a state. */
  nextBeat(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Ends the membership. Never rejects. */
  async leave(): Promise<void> {
    const { redis, keys } = this.#options
    this.#isOver = true
    clearInterval(this.#timer)
    this.#stopListening()
    await this.#beating
    for (const unsubscribe of this.#subscriptions) unsubscribe()
    if (redis.state !== 'ready') return
    const commands = [['HDEL', keys.nodes], ['ZREM', keys.seen]] as const
    // If this fails, the node is listed as gone.
    await Promise.allSettled(commands.map(([name, key]) => redis.command(name, key, this.id)))
  }

  async #beat(): Promise<void> {
    const { redis, keys, entry, onBeat } = this.#options
    if (this.#isOver || redis.state !== 'ready') return
    const announcement = this.#announces ? [keys.channel, stateApplied] : []
    this.#announces = false
    try {
      await this.#subscribe()
      const text = JSON.stringify(await entry())
      const hashes = [keys.state, keys.nodes, keys.seen]
      const reply = await this.#beatScript.run(hashes, this.id, text, listedMs, keys.nodeChannel, ...announcement)
      const { nowMs, stamp, isNew, ...list } = beatIn(reply, keys.nodeChannel)
      const at = performance.now()
      this.#engineTime = { ms: nowMs, at }
      const mayBeNewList = isNew || this.#hasFailed
      this.#hasFailed = false
      if (mayBeNewList && this.#nodes.length > 0) {
        this.#listCountsAt = at + liveMs
        this.#listedAt = at
        // The silence of the others means nothing: this node may have been cut off itself.
        this.#nodes = this.#nodes.filter(isLive).map((node) => ({ ...node, agoMs: 0 }))
      }
      const unlisted = at < this.#listCountsAt ? notListedAgain(this.#nodes, list.nodes, at - this.#listedAt) : []
      const nodes = [...list.nodes, ...unlisted]
      this.#listedAt = at
      this.#refusal = ''
      this.#logChanges(nodes)
      this.#nodes = nodes
      if (!this.#isOver) onBeat(stamp)
    } catch (error) {
      this.#hasFailed = true
      this.#refused(error)
    }
    const waiting = this.#waiting
    this.#waiting = []
    for (const done of waiting) done()
  }

  async #subscribe(): Promise<void> {
    const { redis, keys, onNewState, onCut: onLost } = this.#options
    const onReconnected = (): void => void this.beat()
    const onMessage = (text: string): void => {
      if (text === newState) onNewState()
      if (text === stateApplied && this.#waiting.length > 0) void this.beat()
    }
    // The node's own channel shows the others whether it can still receive messages.
    const channels = [[keys.channel, onMessage], [keys.nodeChannel + this.id, () => {}]] as const
    for (const [channel, onText] of channels.slice(this.#subscriptions.length)) {
      this.#subscriptions.push(await redis.subscribe(channel, { onMessage: onText, onLost, onReconnected }))
    }
  }

  /** Logs why the engine refuses. `shared.ts` logs when it is away. */
  #refused(error: unknown): void {
    if (error instanceof RedisAwayError) return
    const reason = reasonOf(error)
    if (reason === this.#refusal) return
    this.#options.log.error(listRefused(reason))
    this.#refusal = reason
    this.#options.onRefused()
  }

  /** Logs which nodes came up, went down or stopped. */
  #logChanges(now: readonly SeenNode[]): void {
    const { log } = this.#options
    const before = new Map(this.#nodes.filter(({ id }) => id !== this.id).map((node) => [node.id, node]))
    for (const node of now) {
      if (node.id === this.id) continue
      const known = before.get(node.id)
      before.delete(node.id)
      const wasLive = known !== undefined && isLive(known)
      if (isLive(node) && !wasLive) log.info(`node ${node.entry.name} is up`)
      if (!isLive(node) && wasLive) log.warn(`node ${node.entry.name} is down: no heartbeat for 5 s`)
    }
    for (const node of before.values()) if (isLive(node)) log.info(`node ${node.entry.name} has stopped`)
  }
}

/**
 * Returns the warning about an engine that refuses the entry of a node.
 * @param reason the engine's message
 */
export function listRefused(reason: string): string {
  return `the shared engine refuses the list of nodes: ${reason}`
}
