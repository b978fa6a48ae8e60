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
import type { Command } from '../control/commands.ts'
import type { Change, Relay } from '../control/relay.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Summary } from '../metrics/processes.ts'
import type { Redis } from '../redis/client.ts'
import { version } from '../base/version.ts'
import { Acknowledgements } from './acknowledgements.ts'
import { Changes } from './changes.ts'
import type { Nodes, NodesTurn } from './contract.ts'
import { isSwitchOfServer } from './differences.ts'
import { Membership } from './membership.ts'
import { acknowledgementIn, messageIn, textOf, type RecordedMessage } from './messages.ts'
import { Rate } from './rate.ts'
import { listed, mayAnswer, type Beat, type ListedNode, type NodeEntry } from './registry.ts'
import { createNodesRelay } from './relay.ts'
import { Replica, type ReplicaOptions } from './replica.ts'
import { createNodeScripts, nodeKeys, type NodeKeys } from './scripts.ts'
import { SharedState } from './shared-state.ts'
import type { SharedAdmin } from './state.ts'
import { TurnLock } from './turn-lock.ts'
import { Upkeep } from './upkeep.ts'
import { credentialsDiffer, listRefused, notAsOthers } from './warnings.ts'

export interface NodesOptions extends Pick<ReplicaOptions, 'trace'> {
  /** As that of the replica, whatever the change is for. */
  readonly takeUp: (change: Change) => Promise<readonly string[]>
  readonly redis: Redis
  /** What every key begins with, such as `svc:`. */
  readonly prefix: string
  /** What the name of every channel of PUBLISH begins with, another one for each database. */
  readonly place: string
  /** Of module `server`. */
  readonly log: ModuleLogger
  /** The host's name, by which this server is called, with its port. */
  readonly hostName: string
  /** The port that it is to listen on; 0: it is not known before it listens. */
  readonly port: number
  /** The admin's credentials in its configuration; empty texts where it has none. */
  readonly ownAdmin: SharedAdmin
  /** What it tells of itself. */
  readonly summary: () => Promise<Summary>
  /** Called when `isReady` or the warnings may be others. */
  readonly onHealth?: () => void
  /** How long a node may take for a change, in milliseconds; 10,000 unless given. */
  readonly patienceMs?: number
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
  readonly #changes: Changes
  #ownAdmin: SharedAdmin
  #isGiving = false
  #toldOfCredentials = false
  #name: string
  #life: 'starting' | 'ready' | 'stopping' = 'starting'
  readonly #rate = new Rate()

  constructor(options: NodesOptions) {
    const { redis, log, patienceMs = 10_000 } = options
    this.#options = options
    this.#ownAdmin = options.ownAdmin
    this.#name = nameOf(options)
    this.#keys = nodeKeys(options.prefix, options.place)
    const common = { redis, log, keys: this.#keys, scripts: createNodeScripts(redis) }
    this.#lock = new TurnLock(common)
    this.#shared = new SharedState(common)
    this.#replica = new Replica({
      trace: options.trace,
      ownAdmin: () => this.#ownAdmin,
      nowMs: () => this.#membership.nowMs(),
      takeUp: (change, isBack) => this.#takeUp(change, isBack),
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
      onRefused: () => options.onHealth?.(),
    })
    this.#changes = new Changes({
      id: this.#id,
      lock: this.#lock,
      upkeep: this.#upkeep,
      replica: this.#replica,
      shared: this.#shared,
      membership: this.#membership,
      acknowledgements: this.#acknowledgements,
      onTakenBack: ({ admin }) => {
        if (admin !== undefined) this.#ownAdmin = admin // They are in the file of this node: the others get them later.
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
    this.#name = nameOf({ ...this.#options, port })
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

  turn(): Promise<NodesTurn> {
    return this.#changes.turn()
  }

  relay(ask: Relay['ask']): Relay {
    return createNodesRelay(this, ask)
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
        this.#membership.left(message.node)
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

  async #takeUp(change: Change, isBack: boolean): Promise<readonly string[]> {
    const { log, takeUp } = this.#options
    const { type } = change.command
    const tell = (): void => {
      if (isBack) log.warn(`${type}: what could not be shared was taken back`)
      else log.info(`${type} of another node was taken up${shownIn(change)}`)
    }
    const silences = isSwitchOfServer(change, false) // Once that is off, the line would not pass.
    if (silences) tell()
    const lines = await takeUp(change)
    if (!silences) tell()
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
    const { position } = this.#replica
    const { problem } = this.#upkeep
    return {
      name: this.#name,
      state: this.#life === 'ready' && problem !== '' ? 'behind' : this.#life,
      problem,
      version,
      pid: process.pid,
      ...summary,
      per_second: this.#rate.of(summary.requests),
      ...position,
    }
  }
}

function nameOf({ hostName, port }: Pick<NodesOptions, 'hostName' | 'port'>): string {
  return port === 0 ? hostName : `${hostName}:${port}`
}

/** What a change is about, for the log. */
function shownIn({ command }: Change): string {
  if (command.type === 'routes.add') return `: ${JSON.stringify((command as Command<'routes.add'>).record)}`
  if (command.type === 'routes.delete') return `: ${JSON.stringify((command as Command<'routes.delete'>).name)}`
  if (command.type !== 'trace.set') return ''
  const { module, enabled } = command as Command<'trace.set'>
  return `: ${module} ${enabled ? 'on' : 'off'}`
}
