/**
 * This server among the servers that share an engine: the nodes, each a single process, or a primary with its workers.
 *
 * Once a second a node says that it is there, and hears the stamp of the state in the engine and the list of all nodes.
 * What is published is a reason to look at once, and no more. A node that finds another state than its own brings its
 * processes to it; one that cannot says why, is not ready, and tries again.
 *
 * The newest state counts, wherever it lies: an engine that came back with an older one, or with none, is given that of
 * the node.
 */
import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { judge, type AdminCredentials } from '../admin/credentials.ts'
import { differences, initialState, nextState, type DesiredState, type Difference } from '../application/desired-state.ts'
import { changeRouteFile, type RouteFileChange } from '../application/persisted-routes.ts'
import type { StateStore } from '../application/state-store.ts'
import { endsWithin } from '../base/deadline.ts'
import { reasonOf } from '../base/reason.ts'
import { SerialQueue } from '../base/serial-queue.ts'
import { version } from '../base/version.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Summary } from '../metrics/summary.ts'
import { answerFor, awayError } from '../redis/away.ts'
import type { Redis } from '../redis/client.ts'
import { isTemporary, RedisAwayError } from '../redis/errors.ts'
import type { Unsubscribe } from '../redis/subscriber.ts'
import {
  isLive,
  listed,
  mayApply,
  nodeKeys,
  NodeList,
  stateApplied,
  type ListedNode,
  type NodeEntry,
  type NodeKeys,
  type SeenNode,
} from './node-list.ts'
import { Rate } from './rate.ts'
import { ForgedStateError, newState, RedisState } from './redis-state.ts'

export interface NodeOptions {
  readonly redis: Redis
  /** What every key begins with, such as `svc:`. */
  readonly prefix: string
  /** What the name of every channel of PUBLISH begins with, another one for each database. */
  readonly place: string
  /** `shared.name`. */
  readonly sharedName: string
  /** The `app_key` in use, then the previous ones. */
  readonly appKeys: readonly string[]
  /** Of module `server`. */
  readonly log: ModuleLogger
  /** The host's name, by which this server is called, with its port. */
  readonly hostName: string
  /** The port that it is to listen on; 0: it is not known before it listens. */
  readonly port: number
  /** `paths.routes`, absolute. */
  readonly routesFolder: string
  /** The admin's credentials in its configuration; empty texts where it has none. */
  readonly ownCredentials: AdminCredentials
}

/** The processes of a node. */
export interface NodeProcesses {
  /** Brings them to a state. Rejects with what is wrong; they are in the state before then. */
  apply(state: DesiredState): Promise<unknown>
  /** What they say of themselves. */
  summary(): Promise<Summary>
  /** Called when `isReady` or the warnings may have changed. */
  onHealth?(): void
}

/** What the panel shows of the nodes. */
export interface NodesView {
  /** Whether this node has applied the latest state. */
  readonly isReady: boolean
  /** What the operator should know. */
  warnings(): readonly string[]
  /** All nodes of the last hour, by name. */
  list(): Promise<readonly ListedNode[]>
}

const beatMs = 1000
/** The most beats from a failure to the next attempt. */
const longestPause = 10
/** The credentials of the configuration are not the shared ones. */
export const credentialsDiffer =
  'admin.user, admin.password and admin.secret here are not those that the other nodes share: a sign-in here does not count'
  + ' there; give all nodes the same ones, or leave them out of svc.json here'
const engineLost = 'the shared engine has lost what the nodes have in common'

/** One node. Nothing happens before `open()`. */
export class Node implements NodesView, StateStore {
  readonly isShared = true
  readonly #options: NodeOptions
  readonly #id = randomUUID()
  readonly #keys: NodeKeys
  readonly #list: NodeList
  readonly #shared: RedisState
  readonly #writing = new SerialQueue()
  readonly #rate = new Rate()
  readonly #subscriptions: Unsubscribe[] = []
  /** Called after the next beat. */
  readonly #waiters: (() => void)[] = []
  #processes: NodeProcesses | undefined
  #own = initialState
  #ownCredentials: AdminCredentials
  /** The version that is being applied, and the latest of which it is known what came of it. */
  #trying = 0
  #tried = 0
  #name: string
  #life: 'starting' | 'ready' | 'stopping' = 'starting'
  /** Whether the engine has had the state of this node since it could last be heard. */
  #isChecked = false
  #problem = ''
  #failures = 0
  #pause = 0
  #toldOfCredentials = false
  #isGiving = false
  /** Why the engine, which is there, does not take a beat. */
  #refusal = ''
  #nodes: readonly SeenNode[] = []
  #engineTime: { readonly ms: number; readonly at: number } | undefined
  #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  #announces = false
  #aligning: Promise<void> | undefined
  /** Whether there was a reason to align since the last look at the state. */
  #isDue = false
  #isOver = false
  #stopListening = (): void => {}

  constructor(options: NodeOptions) {
    const { redis, prefix, place, sharedName, appKeys } = options
    this.#options = options
    this.#ownCredentials = options.ownCredentials
    this.#keys = nodeKeys(prefix, place)
    this.#list = new NodeList(redis, this.#keys, this.#id)
    const { state: key, channel } = this.#keys
    this.#shared = new RedisState({ redis, key, channel, name: sharedName, appKeys })
    this.#name = nameOf(options)
  }

  get isReady(): boolean {
    return this.#life !== 'starting' && this.#isChecked && this.#problem === '' && this.#refusal === ''
  }

  /** The state that the processes of this node are in, or load their files from. */
  get state(): DesiredState {
    return this.#own
  }

  nowMs(): number {
    const known = this.#engineTime
    return known === undefined ? Date.now() : known.ms + (performance.now() - known.at)
  }

  warnings(): readonly string[] {
    return [
      ...(this.#problem === '' ? [] : [notAsOthers(this.#problem)]),
      ...(this.#refusal === '' ? [] : [listRefused(this.#refusal)]),
      ...(this.#judge() === 'differ' ? [credentialsDiffer] : []),
    ]
  }

  list(): Promise<readonly ListedNode[]> {
    return Promise.resolve(listed(this.#nodes, this.#id, this.#options.redis.state === 'ready'))
  }

  /** Begins to hear of the others; call it before the files are loaded. Never rejects. */
  async open(processes: NodeProcesses): Promise<void> {
    const { redis } = this.#options
    this.#processes = processes
    this.#timer = setInterval(() => void this.#beat(), beatMs).unref()
    this.#stopListening = redis.onState((state) => {
      if (state === 'ready') void this.#beat()
      else this.#cut()
    })
    await this.#beat()
    // Where the last reload is not known, there is one more when the engine is there.
    const found = await this.#shared.read().catch(() => initialState)
    this.#own = { ...initialState, reload: found.reload }
  }

  /** Applies what the files do not hold; call it when they are loaded. Never rejects: what fails is tried again. */
  async join(): Promise<void> {
    this.#life = 'ready'
    await this.#align()
    if (this.#shared.isOfPreviousKey) await this.#shared.write(this.#own, this.#own.stamp).catch(() => {}) // It still counts.
    await this.#beat()
  }

  /** @param port on which the server listens; 0: it is no port */
  listens(port: number): void {
    this.#name = nameOf({ ...this.#options, port })
    void this.#beat()
  }

  /** Call it when a stop begins. */
  stops(): void {
    this.#life = 'stopping'
    void this.#beat()
  }

  /** Leaves the others. Never rejects. */
  async leave(): Promise<void> {
    this.#isOver = true
    clearInterval(this.#timer)
    this.#stopListening()
    await this.#beating
    for (const unsubscribe of this.#subscriptions) unsubscribe()
    if (this.#options.redis.state === 'ready') await this.#list.leave().catch(() => {}) // It is listed as gone, then.
  }

  async read(): Promise<DesiredState> {
    if (this.#life === 'starting') throw awayError('this node is still loading its files')
    try {
      return await this.#latest()
    } catch (error) {
      throw isTemporary(error) ? answerFor(error) : awayError(notAsOthers(reasonOf(error)), error)
    }
  }

  write(next: DesiredState, file?: RouteFileChange): Promise<boolean> {
    return this.#writing.run(async () => {
      if (next.credentials !== undefined && differences(this.#own, next).some(({ type }) => type === 'admin.secret')) {
        this.#ownCredentials = next.credentials // They are in the configuration file of this node.
      }
      const undo = file === undefined ? (): void => {} : changeRouteFile(this.#options.routesFolder, file)
      const isWritten = await this.#shared.write(next, next.previous).catch((error: unknown) => {
        undo()
        throw answerFor(error)
      })
      if (isWritten) this.#applied(next)
      else undo()
      return isWritten
    })
  }

  async missing({ version: wanted }: DesiredState, withinMs: number): Promise<readonly string[]> {
    const deadline = performance.now() + withinMs
    const others = (): SeenNode[] => this.#nodes.filter(({ id, entry }) => id !== this.#id && entry.state !== 'starting')
    const pending = (): SeenNode[] => others().filter((node) => mayApply(node) && node.entry.tried < wanted)
    await this.#beat()
    while (pending().length > 0 && performance.now() < deadline) {
      await endsWithin(deadline - performance.now(), this.#nextBeat())
    }
    const failed = others().filter((node) => isLive(node) && node.entry.tried >= wanted && node.entry.seq < wanted)
    return [
      ...failed.map(({ entry }) => `node ${entry.name}: ${entry.problem}`),
      ...pending().map(({ entry }) => `node ${entry.name}: it did not answer within ${withinMs / 1000} s`),
    ]
  }

  /** Resolves after the next beat. */
  #nextBeat(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  #judge(): ReturnType<typeof judge> {
    return judge(this.#ownCredentials, this.#own.credentials)
  }

  /** The state that counts. Rejects as the client does, and with what keeps the engine's state from being used. */
  async #latest(): Promise<DesiredState> {
    const own = this.#own
    try {
      const found = await this.#shared.read()
      if (found.stamp === own.stamp || found.version > own.version) return found.stamp === own.stamp ? own : found
      if (found.version === own.version) return await this.#choose(found)
      await this.#putBack(found.stamp)
      this.#options.log.warn(`${engineLost}: put back as it was after change ${own.version}`)
      return own
    } catch (error) {
      if (!(error instanceof ForgedStateError) || own.version === 0) throw error
      this.#options.log.error(`${error.message}; put back as it was after change ${own.version}`)
      await this.#putBack(error.stamp)
      return own
    }
  }

  /** @throws PendingError where another node was faster */
  async #putBack(expected: string): Promise<void> {
    if (!(await this.#shared.write(this.#own, expected))) throw new PendingError(engineLost)
  }

  /**
   * Chooses between two states of one version, one of which was made on an engine that had lost the other. The engine's
   * counts where it was made from the same state as that of this node; else that of this node does, as a new version.
   */
  async #choose(found: DesiredState): Promise<DesiredState> {
    const { log } = this.#options
    const own = this.#own
    const isKnown = found.previous === own.previous
    const [wins, loses] = isKnown ? [found, own] : [own, found]
    const lost = differences(wins, loses).map(textOf).join('; ')
    const next = isKnown ? found : nextState({ ...own, stamp: found.stamp }, {})
    if (!isKnown && !(await this.#shared.write(next, found.stamp))) throw new PendingError(engineLost)
    log.error(`two changes ${own.version} were made, since the shared engine had lost one: ${isKnown ? 'its' : 'this node\'s'} counts; lost: ${lost}`)
    return next
  }

  /** Brings this node to the state that counts. Never rejects: what fails is said. */
  #align(): Promise<void> {
    this.#isDue = true
    this.#aligning ??= this.#alignWhileDue().finally(() => (this.#aligning = undefined))
    return this.#aligning
  }

  async #alignWhileDue(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false
      await this.#attempt(async () => {
        const latest = await this.#latest()
        if (latest.stamp !== this.#own.stamp) await this.#follow(latest)
      })
    }
    this.#processes?.onHealth?.()
  }

  async #follow(state: DesiredState): Promise<void> {
    const { routesFolder, log } = this.#options
    const from = this.#own
    this.#trying = state.version
    for (const { name, record, at } of state.routes) {
      const isNew = from.routes.every((entry) => entry.name !== name || entry.at !== at)
      if (record === undefined && isNew) changeRouteFile(routesFolder, { forget: name })
    }
    const steps = differences(from, state)
    // The lines pass the trace switch of module server: they come before it is off, and after it is on.
    const silences = steps.some(({ type, about }) => type === 'trace.set' && about === 'server off')
    const tell = (): void => {
      for (const step of steps) {
        log.info(`${step.type} of another node was taken up${step.about === '' ? '' : `: ${step.about}`}`)
      }
    }
    if (silences) tell()
    await this.#processes?.apply(state)
    if (!silences) tell()
    if (state.version > this.#own.version) this.#applied(state)
  }

  /** The processes of this node are in a state. */
  #applied(state: DesiredState): void {
    this.#own = state
    this.#tried = Math.max(this.#tried, state.version)
    this.#announces = true
    void this.#beat()
  }

  /** Does what brings this node to the state of all, and says what came of it. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    const { log } = this.#options
    try {
      await work()
      if (this.#problem !== '') log.info('this node is as the others again')
      this.#problem = ''
      this.#failures = 0
      this.#pause = 0
      this.#isChecked = true
    } catch (error) {
      if (error instanceof RedisAwayError || error instanceof PendingError) return // The next beat looks again.
      const reason = reasonOf(error)
      if (reason !== this.#problem) log.error(notAsOthers(reason))
      this.#problem = reason
      this.#tried = Math.max(this.#tried, this.#trying)
      this.#failures += 1
      this.#pause = Math.min(this.#failures, longestPause)
      this.#announces = true
      void this.#beat()
    }
  }

  /** Nothing is known of the others until the next beat. */
  #cut(): void {
    this.#isChecked = false
    this.#processes?.onHealth?.()
  }

  /** Says that the node is there. One at a time: a call during one is joined to it. Never rejects. */
  #beat(): Promise<void> {
    this.#beating ??= this.#beatOnce().finally(() => {
      this.#beating = undefined
      if (this.#announces && !this.#isOver && this.#options.redis.state === 'ready') void this.#beat()
    })
    return this.#beating
  }

  async #beatOnce(): Promise<void> {
    const processes = this.#processes
    if (processes === undefined || this.#isOver || this.#options.redis.state !== 'ready') return
    const announces = this.#announces
    this.#announces = false
    try {
      await this.#subscribe()
      const { nowMs, stamp, nodes } = await this.#list.beat(await this.#entry(processes), announces)
      this.#engineTime = { ms: nowMs, at: performance.now() }
      this.#refusal = ''
      this.#tell(nodes)
      this.#nodes = nodes
      if (!this.#isOver) this.#look(stamp)
    } catch (error) {
      this.#refused(error)
    }
    for (const done of this.#waiters.splice(0)) done()
  }

  async #subscribe(): Promise<void> {
    const { redis } = this.#options
    const onReconnected = (): void => void this.#beat()
    const onLost = (): void => this.#cut()
    const onMessage = (text: string): void => {
      if (text === newState && this.#life !== 'starting') void this.#align()
      if (text === stateApplied && this.#waiters.length > 0) void this.#beat()
    }
    // The second channel shows to the others whether this node can still hear.
    const channels = [[this.#keys.channel, onMessage], [this.#keys.own + this.#id, () => {}]] as const
    for (const [channel, heard] of channels.slice(this.#subscriptions.length)) {
      this.#subscriptions.push(await redis.subscribe(channel, { onMessage: heard, onLost, onReconnected }))
    }
  }

  /** @param stamp of the state in the engine */
  #look(stamp: string): void {
    if (this.#life !== 'starting') {
      this.#pause -= 1
      if (this.#problem === '' && stamp === this.#own.stamp) this.#isChecked = true
      else if (this.#pause <= 0) void this.#align()
      if (this.isReady && this.#judge() === 'give') void this.#giveCredentials()
    }
    const differ = this.#judge() === 'differ'
    if (differ && !this.#toldOfCredentials) this.#options.log.warn(credentialsDiffer)
    this.#toldOfCredentials = differ
    this.#processes?.onHealth?.()
  }

  /** Lets the others have the credentials that this node has of its own. What fails is tried again at the next beat. */
  async #giveCredentials(): Promise<void> {
    if (this.#isGiving) return
    this.#isGiving = true
    try {
      const next = nextState(this.#own, { credentials: this.#ownCredentials })
      if (await this.#shared.write(next, next.previous)) {
        await this.#processes?.apply(next)
        this.#applied(next)
      }
    } catch {
      // It is away, which shows in the state of its client.
    }
    this.#isGiving = false
  }

  /** That the engine is away shows in the state of its client. */
  #refused(error: unknown): void {
    if (error instanceof RedisAwayError) return
    const reason = reasonOf(error)
    if (reason === this.#refusal) return
    this.#options.log.error(listRefused(reason))
    this.#refusal = reason
    this.#processes?.onHealth?.()
  }

  /** Says who came and who went. */
  #tell(now: readonly SeenNode[]): void {
    const { log } = this.#options
    const before = new Map(this.#nodes.filter(({ id }) => id !== this.#id).map((node) => [node.id, node]))
    for (const node of now) {
      if (node.id === this.#id) continue
      const known = before.get(node.id)
      before.delete(node.id)
      const wasLive = known !== undefined && isLive(known)
      if (isLive(node) && !wasLive) log.info(`node ${node.entry.name} is there`)
      if (!isLive(node) && wasLive) log.warn(`node ${node.entry.name} is gone: it was not heard of for 5 seconds`)
    }
    for (const node of before.values()) if (isLive(node)) log.info(`node ${node.entry.name} has stopped`)
  }

  async #entry(processes: NodeProcesses): Promise<NodeEntry> {
    const summary = await processes.summary()
    return {
      name: this.#name,
      state: this.#life === 'ready' && this.#problem !== '' ? 'behind' : this.#life,
      problem: this.#problem,
      version,
      pid: process.pid,
      ...summary,
      per_second: this.#rate.of(summary.requests),
      seq: this.#own.version,
      tried: this.#tried,
    }
  }
}

/** Another node was faster; the next beat looks again. */
class PendingError extends Error {
  override readonly name = 'PendingError'
}

function nameOf({ hostName, port }: Pick<NodeOptions, 'hostName' | 'port'>): string {
  return port === 0 ? hostName : `${hostName}:${port}`
}

function textOf({ type, about }: Difference): string {
  return about === '' ? type : `${type} ${about}`
}

/**
 * The warning of a node that is behind.
 * @param problem what it cannot apply, and why
 */
export function notAsOthers(problem: string): string {
  return `this node is not as the others: ${problem}`
}

/**
 * The warning of an engine that does not take what a node says of itself.
 * @param reason what the engine says
 */
export function listRefused(reason: string): string {
  return `the shared engine refuses the list of nodes: ${reason}`
}
