/**
 * This node among the others: says every second that it is there, hears what they tell, and knows who is there.
 *
 * Surprise: a beat is one command, and it comes back with all there is to know: the nodes, and where the state stands. So
 * a message that was lost is made good within a second.
 */
import { performance } from 'node:perf_hooks'
import { reasonOf } from '../base/reason.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Redis } from '../redis/client.ts'
import { RedisAwayError } from '../redis/errors.ts'
import type { Unsubscribe } from '../redis/subscriber.ts'
import { textOf } from './messages.ts'
import { beatIn, isLive, listedMs, type Beat, type NodeEntry, type SeenNode } from './registry.ts'
import type { NodeKeys, NodeScripts } from './scripts.ts'
import { listRefused } from './warnings.ts'

export interface MembershipOptions {
  readonly redis: Redis
  readonly keys: NodeKeys
  readonly scripts: NodeScripts
  readonly id: string
  readonly log: ModuleLogger
  /** What the node tells of itself now. */
  readonly entry: () => Promise<NodeEntry>
  /** A message on the channel of all, and on that of this node. */
  readonly onMessage: (text: string) => void
  readonly onOwnMessage: (text: string) => void
  /** After each beat. */
  readonly onBeat: (beat: Beat) => void
  /** Nothing is known of the others any more, until the next beat. */
  readonly onCut: () => void
  /** Called when the engine does not take what this node says of itself. */
  readonly onRefused: () => void
}

const everyMs = 1000
const mostNames = 1000

export class Membership {
  readonly #options: MembershipOptions
  #timer: NodeJS.Timeout | undefined = undefined
  readonly #subscriptions: Unsubscribe[] = []
  #nodes: readonly SeenNode[] = []
  /** Also of those that the engine has forgotten. */
  readonly #names = new Map<string, string>()
  #beating: Promise<void> | undefined = undefined
  #ofEngine: { readonly nowMs: number; readonly at: number } | undefined = undefined
  #stopListening = (): void => {}
  #refusal = ''
  #isOver = false

  constructor(options: MembershipOptions) {
    this.#options = options
  }

  /** All nodes of the last hour, as they were at the last beat. */
  get nodes(): readonly SeenNode[] {
    return this.#nodes
  }

  /** Why the engine, which is there, does not take a beat; empty: it does. */
  get refusal(): string {
    return this.#refusal
  }

  /** The engine's time in milliseconds, as far as it is known. */
  nowMs(): number {
    const known = this.#ofEngine
    return known === undefined ? Date.now() : known.nowMs + (performance.now() - known.at)
  }

  /** The ids of those that were there at the last beat. */
  liveIds(): readonly string[] {
    return this.#nodes.filter(isLive).map(({ id }) => id)
  }

  /** A node has said that it has stopped. */
  left(id: string): void {
    this.#nodes = this.#nodes.filter((node) => node.id !== id)
  }

  nameOf(id: string): string {
    return this.#names.get(id) ?? id
  }

  /** Begins. Resolves after the first beat, whatever comes of it. */
  async begin(): Promise<void> {
    const { redis, onCut } = this.#options
    this.#timer = setInterval(() => void this.beat(), everyMs).unref()
    this.#stopListening = redis.onState((state) => {
      if (state === 'ready') void this.beat()
      else onCut()
    })
    await this.beat()
  }

  /** Says that the node is there. One beat at a time: a call during one is joined to it. Never rejects. */
  beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => (this.#beating = undefined))
    return this.#beating
  }

  /** Tells the others that the node has stopped, and ends. Never rejects. */
  async leave(name: string): Promise<void> {
    const { redis, scripts, keys, id } = this.#options
    this.#isOver = true
    clearInterval(this.#timer)
    this.#stopListening()
    await this.#beating
    for (const unsubscribe of this.#subscriptions) unsubscribe()
    if (redis.state !== 'ready') return
    const text = textOf({ kind: 'left', node: id, name })
    await scripts.leave.run([keys.nodes, keys.seen], id, keys.channel, text).catch(() => {}) // It is listed as gone, then.
  }

  async #beat(): Promise<void> {
    const { redis, keys, scripts, id, entry, onBeat } = this.#options
    if (this.#isOver || redis.state !== 'ready') return
    try {
      await this.#subscribe()
      const text = JSON.stringify(await entry())
      const reply = await scripts.beat.run([keys.state, keys.nodes, keys.seen], id, text, listedMs, keys.own)
      const beat = beatIn(reply, keys.own)
      this.#ofEngine = { nowMs: beat.nowMs, at: performance.now() }
      this.#refusal = ''
      this.#tell(beat.nodes)
      this.#nodes = beat.nodes
      if (!this.#isOver) onBeat(beat)
    } catch (error) {
      this.#refused(error)
    }
  }

  async #subscribe(): Promise<void> {
    const { redis, keys, id, onMessage, onOwnMessage, onCut: onLost } = this.#options
    const onReconnected = (): void => void this.beat()
    const channels = [[keys.channel, onMessage], [keys.own + id, onOwnMessage]] as const
    for (const [channel, heard] of channels.slice(this.#subscriptions.length)) {
      this.#subscriptions.push(await redis.subscribe(channel, { onMessage: heard, onLost, onReconnected }))
    }
  }

  /** That the engine is away shows in the state of its client. */
  #refused(error: unknown): void {
    if (error instanceof RedisAwayError) return
    const reason = reasonOf(error)
    if (reason === this.#refusal) return
    this.#options.log.error(listRefused(reason))
    this.#refusal = reason
    this.#options.onRefused()
  }

  /** Says who came and who went. */
  #tell(now: readonly SeenNode[]): void {
    const { log, id } = this.#options
    const before = new Map(this.#nodes.map((node) => [node.id, node]))
    if (this.#names.size > mostNames) this.#names.clear()
    for (const node of now) {
      this.#names.set(node.id, node.entry.name)
      if (node.id === id) continue
      const known = before.get(node.id)
      if (isLive(node) && (known === undefined || !isLive(known))) log.info(`node ${node.entry.name} is there`)
      if (!isLive(node) && known !== undefined && isLive(known)) log.warn(`node ${node.entry.name} is gone: it was not heard of for 5 seconds`)
    }
  }
}
