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
import { performance } from 'node:perf_hooks'
import { judge, type AdminCredentials } from '../admin/credentials.ts'
import {
  descends,
  differences,
  initialState,
  nextState,
  type DesiredState,
  type Difference,
} from '../application/desired-state.ts'
import { changeRouteFile, type RouteFileChange } from '../application/persisted-routes.ts'
import type { StateStore } from '../application/state-store.ts'
import { endsWithin } from '../base/deadline.ts'
import { reasonOf } from '../base/reason.ts'
import { SerialQueue } from '../base/serial-queue.ts'
import { version } from '../base/version.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { Summary } from '../metrics/processes.ts'
import { answerFor, awayError } from '../redis/away.ts'
import type { Redis } from '../redis/client.ts'
import { isTemporary, RedisAwayError } from '../redis/errors.ts'
import { listRefused, Membership, newState } from './membership.ts'
import { isLive, mayApply, nodeKeys, type ListedNode, type NodeEntry, type SeenNode } from './node-list.ts'
import { Rate } from './rate.ts'
import { ForgedStateError, RedisState } from './redis-state.ts'

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
  readonly #membership: Membership
  readonly #shared: RedisState
  readonly #writing = new SerialQueue()
  readonly #rate = new Rate()
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
  #aligning: Promise<void> | undefined
  /** Whether there was a reason to align since the last look at the state. */
  #isDue = false

  constructor(options: NodeOptions) {
    const { redis, prefix, place, sharedName, appKeys, log } = options
    this.#options = options
    this.#ownCredentials = options.ownCredentials
    const keys = nodeKeys(prefix, place)
    const onCut = (): void => {
      this.#isChecked = false
      this.#processes?.onHealth?.()
    }
    this.#membership = new Membership({
      redis,
      keys,
      log,
      entry: () => this.#entry(),
      onBeat: (stamp) => this.#look(stamp),
      onNewState: () => {
        if (this.#life !== 'starting') void this.#align()
      },
      onCut,
      onRefused: () => this.#processes?.onHealth?.(),
    })
    const announcement = { channel: keys.channel, message: newState }
    this.#shared = new RedisState({ redis, key: keys.state, name: sharedName, appKeys, announcement })
    this.#name = nameOf(options)
  }

  get isReady(): boolean {
    return this.#life !== 'starting' && this.#isChecked && this.#problem === '' && this.#membership.refusal === ''
  }

  /** The state that the processes of this node are in, or load their files from. */
  get state(): DesiredState {
    return this.#own
  }

  nowMs(): number {
    return this.#membership.nowMs()
  }

  warnings(): readonly string[] {
    const { refusal } = this.#membership
    return [
      ...(this.#problem === '' ? [] : [notAsOthers(this.#problem)]),
      ...(refusal === '' ? [] : [listRefused(refusal)]),
      ...(this.#judge() === 'differ' ? [credentialsDiffer] : []),
    ]
  }

  list(): Promise<readonly ListedNode[]> {
    return Promise.resolve(this.#membership.list())
  }

  /** Begins to hear of the others; call it before the files are loaded. Never rejects. */
  async open(processes: NodeProcesses): Promise<void> {
    this.#processes = processes
    await this.#membership.open()
    // Where the last reload is not known, there is one more when the engine is there.
    const found = await this.#shared.read().catch(() => initialState)
    this.#own = { ...initialState, reload: found.reload }
  }

  /** Applies what the files do not hold; call it when they are loaded. Never rejects: what fails is tried again. */
  async join(): Promise<void> {
    this.#life = 'ready'
    await this.#align()
    if (this.#shared.isOfPreviousKey) {
      await this.#shared.write(this.#own, this.#own.stamp).catch(() => {}) // The previous key still verifies it.
    }
    await this.#membership.beat()
  }

  /** @param port on which the server listens; 0: it is no port */
  listens(port: number): void {
    this.#name = nameOf({ ...this.#options, port })
    void this.#membership.beat()
  }

  /** Call it when a stop begins. */
  stops(): void {
    this.#life = 'stopping'
    void this.#membership.beat()
  }

  /** Leaves the others. Never rejects. */
  async leave(): Promise<void> {
    await this.#membership.leave()
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
      const isWritten = await this.#shared.write(next, next.ancestors[0] ?? '').catch((error: unknown) => {
        undo()
        throw answerFor(error)
      })
      if (isWritten) this.#applied(next)
      else undo()
      return isWritten
    })
  }

  async missing(wanted: DesiredState, withinMs: number): Promise<readonly string[]> {
    const deadline = performance.now() + withinMs
    const { id: self } = this.#membership
    const others = (): SeenNode[] =>
      this.#membership.nodes.filter(({ id, entry }) => id !== self && entry.state !== 'starting')
    const hasFailed = ({ entry }: SeenNode): boolean => entry.tried >= wanted.version && entry.seq < wanted.version
    const pending = (): SeenNode[] =>
      others().filter((node) => mayApply(node) && !hasFailed(node) && !this.#hasApplied(node, wanted))
    await this.#membership.beat()
    while (pending().length > 0 && descends(this.#own, wanted) && performance.now() < deadline) {
      await endsWithin(deadline - performance.now(), this.#membership.nextBeat())
    }
    if (!descends(this.#own, wanted)) return ['the shared engine lost it, and another change took its place']
    const failed = others().filter((node) => isLive(node) && hasFailed(node))
    return [
      ...failed.map(({ entry }) => `node ${entry.name}: ${entry.problem}`),
      ...pending().map(({ entry }) => `node ${entry.name}: it did not answer within ${withinMs / 1000} s`),
    ]
  }

  /** Whether a node is in a state that this node knows to be the wanted one, or to be made from it. */
  #hasApplied({ entry: { stamp, seq } }: SeenNode, wanted: DesiredState): boolean {
    const { version, ...own } = this.#own
    const line = [own.stamp, ...own.ancestors]
    const at = line.indexOf(wanted.stamp)
    // The line of ancestors ends somewhere: then the number has to do.
    return at === -1 ? seq >= wanted.version && seq <= version : line.indexOf(stamp) !== -1 && line.indexOf(stamp) <= at
  }

  #judge(): ReturnType<typeof judge> {
    return judge(this.#ownCredentials, this.#own.credentials)
  }

  /** The state that counts. Rejects as the client does, and with what keeps the engine's state from being used. */
  async #latest(): Promise<DesiredState> {
    const own = this.#own
    try {
      const found = await this.#shared.read()
      if (found.stamp === own.stamp) return own
      if (found.version > own.version) return found
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
    if (found.ancestors[0] === own.ancestors[0]) return found
    const next = nextState(own, {})
    if (!(await this.#shared.write(next, found.stamp))) throw new PendingError(engineLost)
    log.error(`${twoChanges(own)}: this node's counts; lost: ${lostBetween(own, found)}`)
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
    if (this.#own === from || state.version > this.#own.version) this.#applied(state)
  }

  /** The processes of this node are in a state. */
  #applied(state: DesiredState): void {
    const before = this.#own
    if (!descends(state, before)) {
      this.#options.log.error(`${twoChanges(before)}: its counts; lost: ${lostBetween(state, before)}`)
    }
    this.#own = state
    this.#tried = Math.max(this.#tried, state.version)
    this.#membership.announce()
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
      this.#membership.announce()
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
      const own = this.#own
      const next = nextState(own, { credentials: this.#ownCredentials })
      if (await this.#shared.write(next, own.stamp)) {
        await this.#processes?.apply(next)
        this.#applied(next)
      }
    } catch {
      // It is away, which shows in the state of its client.
    }
    this.#isGiving = false
  }

  async #entry(): Promise<NodeEntry> {
    const processes = this.#processes as NodeProcesses // The first beat comes when they are given.
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
      stamp: this.#own.stamp,
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

function twoChanges({ version: number }: DesiredState): string {
  return `two changes ${number} were made, since the shared engine had lost one`
}

/** A list of the changes in a state that another one, which counts, does not have. */
function lostBetween(counts: DesiredState, loses: DesiredState): string {
  return differences(counts, loses).map(textOf).join('; ')
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
