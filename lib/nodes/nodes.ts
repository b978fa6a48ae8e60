/**
 * The nodes of a service: servers, on one machine or many, that change as one. A node is a single process, or a primary
 * with its workers.
 *
 * What all have in common is a state in the shared engine. Who changes it takes the turn of all, carries the change out,
 * records it, and waits until the others have taken it up. Who missed something brings itself to the state.
 *
 * Surprise: what is recorded last counts, whatever a node thinks. One that could not record what it had carried out takes
 * it back; and where the engine has lost its data, the nodes put back the newest state that one of them has.
 */
import { randomUUID } from 'node:crypto'
import type { Change } from '../control/relay.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Summary } from '../metrics/summary.ts'
import { answerFor, awayError } from '../redis/away.ts'
import type { Redis } from '../redis/client.ts'
import { version } from '../version.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { editsOf } from './edits.ts'
import { Membership } from './membership.ts'
import { acknowledgementIn, messageIn, textOf, type RecordedMessage } from './messages.ts'
import { listed, mayAnswer, type Beat, type ListedNode, type NodeEntry } from './registry.ts'
import { Replica, type ReplicaOptions } from './replica.ts'
import { createNodeScripts, nodeKeys, type NodeKeys } from './scripts.ts'
import { SharedState } from './shared-state.ts'
import { edited, isEmpty, type SharedAdmin } from './state.ts'
import { TurnLock, type HeldTurn } from './turn-lock.ts'
import { Upkeep } from './upkeep.ts'
import { credentialsDiffer, listRefused, notAsOthers } from './warnings.ts'

export interface NodesOptions extends Pick<ReplicaOptions, 'takeUp' | 'trace'> {
  readonly redis: Redis
  /** What every key begins with, such as `svc:`. */
  readonly prefix: string
  /** Of module `server`. */
  readonly log: ModuleLogger
  /** What this server is called: its host's name, until it listens. */
  readonly hostName: string
  /** The admin's credentials in its configuration; empty texts where it has none. */
  readonly ownAdmin: SharedAdmin
  /** What it tells of itself. */
  readonly summary: () => Promise<Summary>
  /** Called when `isReady` or the warnings may be others. */
  readonly onHealth?: () => void
  /** How long a node may take for a change, in milliseconds; 10,000 unless given. */
  readonly patienceMs?: number
}

/** What the panel shows of the nodes. */
export interface NodesView {
  /** Whether this node is as the others. */
  readonly isReady: boolean
  /** What the operator should know. */
  warnings(): readonly string[]
  /** All nodes of the last hour, by name. */
  list(): Promise<readonly ListedNode[]>
}

/** A change that is recorded: it counts from now on. */
export interface Recorded {
  /** Resolves when the other nodes have answered, with a line for each that has not taken it up. Never rejects. */
  readonly missing: Promise<readonly string[]>
}

/** The turn of all nodes. */
export interface NodesTurn {
  /**
   * Records what this node has carried out. Rejects with HttpError 503 where that cannot be: the node has taken it back
   * then.
   */
  record(change: Change): Promise<Recorded>
  /** Lets the next one begin. To be called once. */
  end(): void
}

export interface Nodes extends NodesView {
  /** Begins to hear of the others; to be called before the files are loaded. Never rejects. */
  open(): Promise<void>
  /** Takes up what the files do not hold; to be called when they are loaded. Never rejects: what fails is tried again. */
  join(): Promise<void>
  /** Says where the server listens: 0, where it is no port. */
  listens(port: number): void
  /** Says that a stop has begun. */
  stops(): void
  /** Leaves the others. Never rejects. */
  leave(): Promise<void>
  /**
   * Waits for the turn of all. Rejects with HttpError 503 while the engine is away, or where this node is not as the others.
   */
  turn(): Promise<NodesTurn>
}

/** Makes this server a node; nothing happens before `open()`. */
export function createNodes(options: NodesOptions): Nodes {
  return new Group(options)
}

class Group implements Nodes {
  readonly #options: NodesOptions
  readonly #id = randomUUID()
  readonly #keys: NodeKeys
  readonly #membership: Membership
  readonly #replica: Replica
  readonly #shared: SharedState
  readonly #lock: TurnLock
  readonly #upkeep: Upkeep
  readonly #acknowledgements: Acknowledgements
  #ownAdmin: SharedAdmin
  #isGiving = false
  #toldOfCredentials = false
  #name: string
  #life: 'starting' | 'ready' | 'stopping' = 'starting'
  /** At the last beat. */
  #counted = { requests: 0, at: performance.now() }

  constructor(options: NodesOptions) {
    const { redis, log, hostName, patienceMs = 10_000 } = options
    this.#options = options
    this.#ownAdmin = options.ownAdmin
    this.#name = hostName
    this.#keys = nodeKeys(options.prefix)
    const common = { redis, log, keys: this.#keys, scripts: createNodeScripts(redis) }
    this.#lock = new TurnLock(common)
    this.#shared = new SharedState(common)
    this.#replica = new Replica({
      trace: options.trace,
      ownAdmin: () => this.#ownAdmin,
      nowMs: () => this.#membership.nowMs(),
      takeUp: (change) => this.#takeUp(change),
      onTraceEnd: (module, enabled) => void this.#endTrace(module, enabled),
    })
    this.#upkeep = new Upkeep({ replica: this.#replica, shared: this.#shared, log })
    this.#acknowledgements = new Acknowledgements(patienceMs, (id) => this.#membership.nameOf(id))
    this.#membership = new Membership({
      ...common,
      id: this.#id,
      entry: () => this.#entry(),
      onMessage: (text) => this.#hear(text),
      onOwnMessage: (text) => {
        const said = acknowledgementIn(text)
        if (said !== undefined) this.#acknowledgements.take(said)
      },
      onBeat: (beat) => this.#beaten(beat),
      onCut: () => {
        this.#upkeep.cut()
        options.onHealth?.()
      },
    })
  }

  get isReady(): boolean {
    return this.#upkeep.isCurrent && this.#membership.refusal === ''
  }

  warnings(): readonly string[] {
    const { refusal } = this.#membership
    const { problem } = this.#upkeep
    return [
      ...(problem === '' ? [] : [notAsOthers(problem)]),
      ...(refusal === '' ? [] : [listRefused(refusal)]),
      ...(this.#replica.hasOtherCredentials() ? [credentialsDiffer] : []),
    ]
  }

  list(): Promise<readonly ListedNode[]> {
    const isHeard = this.#options.redis.state === 'ready'
    return Promise.resolve(listed(this.#membership.nodes, this.#id, isHeard))
  }

  async open(): Promise<void> {
    await this.#membership.begin()
    // Where it is not known which reload was the last one, there is one more when the engine is there.
    const found = await this.#shared.read().catch(() => undefined)
    this.#replica.loadedAt(found?.state.get('reload'))
  }

  async join(): Promise<void> {
    await this.#upkeep.begin()
    this.#life = 'ready'
    await this.#membership.beat()
  }

  listens(port: number): void {
    const { hostName } = this.#options
    this.#name = port === 0 ? hostName : `${hostName}:${port}`
    void this.#membership.beat()
  }

  stops(): void {
    this.#life = 'stopping'
    void this.#membership.beat()
  }

  async leave(): Promise<void> {
    this.#replica.close()
    await this.#membership.leave(this.#name)
  }

  async turn(): Promise<NodesTurn> {
    let free: () => void = () => {}
    const freed = new Promise<void>((resolve) => (free = resolve))
    let held: HeldTurn | undefined
    try {
      held = await this.#lock.take()
      await this.#upkeep.enter(held.position, freed)
    } catch (error) {
      await held?.end()
      throw answerFor(error)
    }
    const turn = held
    return {
      record: (change) => this.#record(turn, change).finally(free),
      end: () => {
        free()
        void turn.end()
      },
    }
  }

  async #record({ token }: HeldTurn, change: Change): Promise<Recorded> {
    const { state, position: before } = this.#replica
    const after = { seq: before.seq + 1, stamp: randomUUID() }
    const edits = editsOf(state, change, { seq: after.seq, nowMs: this.#membership.nowMs() })
    if (isEmpty(edits)) return { missing: Promise.resolve([]) }
    this.#acknowledgements.expect(after.stamp)
    try {
      const outcome = await this.#shared.record(token, { kind: 'recorded', node: this.#id, before, after, edits })
      if (outcome === 'lost') throw awayError('this node stood still and lost its turn, so nothing was changed')
      if (outcome === 'behind') throw awayError('the shared engine has lost what the nodes have in common, so nothing was changed')
      this.#replica.recorded(edited(state, edits), after)
      const others = outcome.ids.filter((id) => id !== this.#id)
      return { missing: this.#acknowledgements.all(after.stamp, after.seq, others) }
    } catch (error) {
      this.#acknowledgements.forget(after.stamp)
      if (change.admin !== undefined) this.#ownAdmin = change.admin // They are in its file: the others get them later.
      await this.#upkeep.takeBack(edits)
      throw answerFor(error)
    }
  }

  #hear(text: string): void {
    const message = messageIn(text)
    switch (message?.kind) {
      case 'recorded':
        if (message.node !== this.#id) void this.#follow(message)
        break
      case 'turn-ended':
        this.#lock.look()
        break
      case 'look':
        void this.#membership.beat()
        break
      case 'left':
        this.#acknowledgements.left(message.node)
        this.#options.log.info(`node ${message.name} has stopped`)
    }
  }

  async #follow(message: RecordedMessage): Promise<void> {
    const lines = await this.#upkeep.follow(message)
    const said = textOf({ stamp: message.after.stamp, node: this.#id, name: this.#name, lines })
    this.#options.onHealth?.()
    // An answer that is lost is made good by the next beat.
    await this.#options.redis.command('PUBLISH', this.#keys.own + message.node, said).catch(() => {})
  }

  #beaten({ position, nodes }: Beat): void {
    this.#upkeep.look(position)
    this.#acknowledgements.look(
      nodes.map((node) => ({ id: node.id, seq: node.entry.seq, isThere: mayAnswer(node) })),
    )
    if (this.isReady && this.#replica.givesCredentials()) void this.#giveCredentials()
    const differ = this.#replica.hasOtherCredentials()
    if (differ && !this.#toldOfCredentials) this.#options.log.warn(credentialsDiffer)
    this.#toldOfCredentials = differ
    this.#options.onHealth?.()
  }

  /** Lets the others have the credentials that this node has of its own. */
  async #giveCredentials(): Promise<void> {
    if (this.#isGiving) return
    this.#isGiving = true
    try {
      const turn = await this.turn()
      try {
        const change = { command: { type: 'admin.secret' }, admin: this.#ownAdmin } as const
        if (this.#replica.givesCredentials()) await (await turn.record(change)).missing
      } finally {
        turn.end()
      }
    } catch {
      // The next beat tries again.
    }
    this.#isGiving = false
  }

  async #takeUp(change: Change): Promise<readonly string[]> {
    const lines = await this.#options.takeUp(change)
    const { type, ...what } = change.command
    const name = 'name' in what ? ` of ${JSON.stringify(what.name)}` : ''
    this.#options.log.info(`${type}${name} of another node was taken up`)
    return lines
  }

  async #endTrace(module: string, enabled: boolean): Promise<void> {
    const { log, takeUp } = this.#options
    log.info(`trace of ${module} went back to ${enabled ? 'on' : 'off'} by itself`)
    await this.#upkeep.inOrder(() => takeUp({ command: { type: 'trace.set', module, enabled } })).catch((error: unknown) => {
      log.error(`trace of ${module} did not go back`, error)
    })
  }

  async #entry(): Promise<NodeEntry> {
    const summary = await this.#options.summary()
    const at = performance.now()
    const seconds = Math.max((at - this.#counted.at) / 1000, 0.001)
    const perSecond = Math.max(0, summary.requests - this.#counted.requests) / seconds
    this.#counted = { requests: summary.requests, at }
    const { position } = this.#replica
    const { problem } = this.#upkeep
    return {
      name: this.#name,
      state: this.#life === 'ready' && problem !== '' ? 'behind' : this.#life,
      problem,
      version,
      pid: process.pid,
      ...summary,
      per_second: Math.round(perSecond * 10) / 10,
      ...position,
    }
  }
}
