/**
 * A node: this server among those that share an engine, either a single process or a primary with its workers.
 *
 * Once a second a node writes its entry, and reads the list of nodes and the stamp of the state in the engine. A
 * message makes it check at once. When that state is not the one that the node has applied, the node applies it in its
 * processes. If that fails, the node reports the reason, is not ready, and retries.
 *
 * The newest state wins, wherever it is: when the engine returns with an older state or none, the node writes its state
 * back.
 */
import { performance } from 'node:perf_hooks'
import { credentialsOf } from '../access/credential-store.ts'
import { judge, type AdminCredentials } from '../access/credentials.ts'
import {
  descends,
  differences,
  initialState,
  nextState,
  type DesiredState,
  type Difference,
} from '../control/desired-state.ts'
import { changeRouteFile, type RouteFileChange } from '../control/persisted-routes.ts'
import type { StateStore } from '../control/state-store.ts'
import type { UsedCodesFile } from '../control/used-codes-file.ts'
import { endsWithin } from '../base/deadline.ts'
import { reasonOf } from '../base/reason.ts'
import { SerialQueue } from '../base/serial-queue.ts'
import { version } from '../base/version.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { ErrorGroup } from '../log/error-groups.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { nodeName } from '../log/record.ts'
import type { Summary } from '../metrics/processes.ts'
import type { Redis } from '../redis/client.ts'
import { awayError } from '../http/errors.ts'
import { answerFor, isTemporary, RedisAwayError } from '../redis/errors.ts'
import { listRefused, Membership, newState } from './membership.ts'
import { isLive, mayApply, nodeKeys, type ListedNode, type NodeEntry, type SeenNode } from './node-list.ts'
import { Rate } from './rate.ts'
import { ForgedStateError, RedisState } from './redis-state.ts'
import { SharedErrors } from './shared-errors.ts'

/** What each user of the engine needs. */
export interface SharedContext {
  readonly loaded: LoadedConfig
  readonly appKey: string
  readonly redis: Redis
  /** The prefix of every key. */
  readonly prefix: string
  /** The prefix of every channel of PUBLISH, which ignores databases. */
  readonly channelPrefix: string
  /** Of module `server`. */
  readonly log: ModuleLogger
}

/** The processes of this node. */
interface NodeProcesses {
  /** Applies a state in all of them. When it rejects, they keep the previous state. */
  apply(state: DesiredState): Promise<unknown>
  /** Adds up their readings. */
  summary(): Promise<Summary>
  /** Returns their errors by cause. */
  errors(): Promise<readonly ErrorGroup[]>
  /** Forgets those that were not seen after a time, in milliseconds since 1970. */
  clearErrors(beforeMs: number): Promise<unknown>
  /** Called when `isReady` or the warnings may have changed. */
  onHealth?(): void
}

/** The nodes for the panel. */
export interface NodesView {
  /** Whether this node has applied the latest state. */
  readonly isReady: boolean
  /** Returns the warnings for the operator. */
  warnings(): readonly string[]
  /** Returns all nodes seen in the last hour, sorted by name. */
  list(): Promise<readonly ListedNode[]>
  /** Returns the errors by cause of the other nodes, a list each. Rejects while the engine is away. */
  errors(): Promise<readonly (readonly ErrorGroup[])[]>
  /** Clears the errors of the other nodes. Rejects while the engine is away. */
  clearErrors(): Promise<void>
}

/** The most beats between a failure and the next attempt. */
const longestPause = 10
/** The warning when the credentials of the configuration differ from the shared ones. */
export const credentialsDiffer =
  'admin.user, admin.password, admin.secret and admin.totp here differ from those that the other nodes share: a sign-in'
  + ' here is not valid there; give all nodes the same ones, or remove them from svc.json here'
const engineLost = 'the shared engine has lost the state of the nodes'

/** A node. Call `open()` to begin. */
export class Node implements NodesView, StateStore {
  readonly isShared = true
  readonly #context: SharedContext
  readonly #routesFolder: string
  readonly #usedCodesFile: UsedCodesFile
  readonly #membership: Membership
  readonly #shared: RedisState
  readonly #errors: SharedErrors
  readonly #writing = new SerialQueue()
  readonly #rate = new Rate()
  #processes: NodeProcesses | undefined
  #current = initialState
  #ownCredentials: AdminCredentials
  /** The version that is being applied. */
  #trying = 0
  /** The latest version that was applied or has failed. */
  #tried = 0
  /** The latest state that was reported to a client as applied by every node. */
  #confirmed = initialState
  #name: string
  #life: 'starting' | 'ready' | 'stopping' = 'starting'
  /** Whether the engine had the state of this node since the last reconnection. */
  #isChecked = false
  #problem = ''
  #failures = 0
  #pause = 0
  #hasWarnedOfCredentials = false
  #isSharingCredentials = false
  #reconciling: Promise<void> | undefined
  /** Whether to read the state again. */
  #isDue = false

  /** @param routesFolder `paths.routes`, absolute */
  constructor(context: SharedContext, routesFolder: string, usedCodesFile: UsedCodesFile) {
    const { redis, prefix, channelPrefix, log, loaded: { config }, appKey } = context
    this.#context = context
    this.#routesFolder = routesFolder
    this.#usedCodesFile = usedCodesFile
    this.#ownCredentials = credentialsOf(config)
    const keys = nodeKeys(prefix, channelPrefix)
    this.#membership = new Membership({
      redis,
      keys,
      log,
      entry: () => this.#entry(),
      onBeat: (stamp) => this.#checkState(stamp),
      onNewState: () => {
        if (this.#life !== 'starting') void this.#reconcile()
      },
      onCut: () => {
        this.#isChecked = false
        this.#processes?.onHealth?.()
      },
      onRefused: () => this.#processes?.onHealth?.(),
    })
    const announcement = { channel: keys.channel, message: newState }
    const appKeys = [appKey, ...config.app_key_previous]
    this.#shared = new RedisState({ redis, key: keys.state, name: config['shared.name'], appKeys, announcement })
    this.#errors = new SharedErrors({
      redis,
      prefix: `${keys.nodes}:errors:`,
      id: this.#membership.id,
      local: () => (this.#processes as NodeProcesses).errors(), // open() sets them before the first beat.
      clearLocal: (beforeMs) => (this.#processes as NodeProcesses).clearErrors(beforeMs),
    })
    this.#name = nodeName(config['server.port'])
  }

  get isReady(): boolean {
    return this.#life !== 'starting' && this.#isChecked && this.#problem === '' && this.#membership.refusal === ''
  }

  /** The state that the processes of this node have applied, or with which they load. */
  get state(): DesiredState {
    return this.#current
  }

  nowMs(): number {
    return this.#membership.nowMs()
  }

  warnings(): readonly string[] {
    const { refusal } = this.#membership
    return [
      ...(this.#problem === '' ? [] : [outOfSync(this.#problem)]),
      ...(refusal === '' ? [] : [listRefused(refusal)]),
      ...(this.#judge() === 'differ' ? [credentialsDiffer] : []),
    ]
  }

  list(): Promise<readonly ListedNode[]> {
    return Promise.resolve(this.#membership.list())
  }

  errors(): Promise<readonly (readonly ErrorGroup[])[]> {
    return this.#errors.ofOthers(this.#ids()).catch(rethrowAnswer)
  }

  clearErrors(): Promise<void> {
    return this.#errors.clearOthers(this.#ids(), this.nowMs()).catch(rethrowAnswer)
  }

  /** Connects to the other nodes. Call it before the application is loaded. Never rejects. */
  async open(processes: NodeProcesses): Promise<void> {
    this.#processes = processes
    await this.#membership.open()
    // When the last reload is unknown, the node reloads again once the engine is available.
    const found = await this.#shared.read().catch(() => initialState)
    this.#current = { ...initialState, reload: found.reload }
  }

  /** Applies the state. Call it when the application is loaded. Never rejects: failures are retried later. */
  async join(): Promise<void> {
    this.#life = 'ready'
    await this.#reconcile()
    if (this.#shared.isOfPreviousKey) {
      // If this fails, the previous key still verifies the state.
      await this.#shared.write(this.#current, this.#current.stamp).catch(() => {})
    }
    await this.#membership.beat()
  }

  /** Call it when the server listens. @param port 0 for a Unix socket */
  listens(port: number): void {
    this.#name = nodeName(port)
    void this.#membership.beat()
  }

  /** Call it when a stop begins. */
  stops(): void {
    this.#life = 'stopping'
    void this.#membership.beat()
  }

  /** Leaves the list of nodes. Never rejects. */
  async leave(): Promise<void> {
    await this.#membership.leave()
  }

  async read(): Promise<DesiredState> {
    if (this.#life === 'starting') throw awayError('this node is still loading its files')
    try {
      return await this.#latest()
    } catch (error) {
      throw isTemporary(error) ? answerFor(error) : awayError(outOfSync(reasonOf(error)), error)
    }
  }

  write(next: DesiredState, file?: RouteFileChange): Promise<boolean> {
    return this.#writing.run(async () => {
      const changes = differences(this.#current, next)
      if (next.credentials !== undefined && changes.some(({ type }) => type === 'admin.secret')) {
        this.#ownCredentials = next.credentials // This node has saved them in its configuration file.
      }
      const undo = file === undefined ? (): void => {} : changeRouteFile(this.#routesFolder, file)
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
    while (pending().length > 0 && descends(this.#current, wanted) && performance.now() < deadline) {
      await endsWithin(deadline - performance.now(), this.#membership.nextBeat())
    }
    if (!descends(this.#current, wanted)) return ['the shared engine lost it, and another change replaced it']
    const failed = others().filter((node) => isLive(node) && hasFailed(node))
    const missing = [
      ...failed.map(({ entry }) => `node ${entry.name}: ${entry.problem}`),
      ...pending().map(({ entry }) => `node ${entry.name}: it did not answer within ${withinMs / 1000} s`),
    ]
    // Several changes may wait here, and an earlier one may end last.
    if (missing.length === 0 && wanted.version > this.#confirmed.version) this.#confirmed = wanted
    return missing
  }

  /** Whether a node has applied the wanted state or a known descendant of it. */
  #hasApplied({ entry: { stamp, seq } }: SeenNode, wanted: DesiredState): boolean {
    const { version, ...current } = this.#current
    const lineage = [current.stamp, ...current.ancestors]
    const at = lineage.indexOf(wanted.stamp)
    // A state names a limited number of ancestors. Beyond them, the version decides.
    if (at === -1) return seq >= wanted.version && seq <= version
    return lineage.slice(0, at + 1).includes(stamp)
  }

  #ids(): string[] {
    return this.#membership.nodes.map(({ id }) => id)
  }

  #judge(): ReturnType<typeof judge> {
    return judge(this.#ownCredentials, this.#current.credentials)
  }

  /** Returns the winning state. Rejects as the client does, and when the engine's state cannot be used. */
  async #latest(): Promise<DesiredState> {
    const current = this.#current
    try {
      const found = await this.#shared.read()
      if (found.stamp === current.stamp) return current
      if (found.version > current.version) return found
      if (found.version === current.version) return await this.#choose(found)
      await this.#putBack(found.stamp)
      this.#context.log.warn(`${engineLost}: restored as of change ${current.version}`)
      return current
    } catch (error) {
      if (!(error instanceof ForgedStateError) || current.version === 0) throw error
      this.#context.log.error(`${error.message}; restored as of change ${current.version}`)
      await this.#putBack(error.stamp)
      return current
    }
  }

  /** @throws PendingError when another node was faster */
  async #putBack(expected: string): Promise<void> {
    if (!(await this.#shared.write(this.#current, expected))) throw new PendingError(engineLost)
  }

  /**
   * Chooses between two states of the same version, one of which was made on an engine that had lost the other. If both
   * descend from the same state, the engine's wins, unless this node's was reported to a client as applied everywhere.
   * Otherwise this node writes its state as a new version.
   */
  async #choose(found: DesiredState): Promise<DesiredState> {
    const { log } = this.#context
    const current = this.#current
    if (found.ancestors[0] === current.ancestors[0] && current.stamp !== this.#confirmed.stamp) return found
    const next = nextState(current, {})
    if (!(await this.#shared.write(next, found.stamp))) throw new PendingError(engineLost)
    log.error(`${twoChanges(current)}: kept the one of this node; lost: ${lostBetween(current, found)}`)
    return next
  }

  /** Applies the winning state. Never rejects: failures are logged and retried. */
  #reconcile(): Promise<void> {
    this.#isDue = true
    this.#reconciling ??= this.#reconcileWhileDue().finally(() => (this.#reconciling = undefined))
    return this.#reconciling
  }

  async #reconcileWhileDue(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false
      await this.#attempt(async () => {
        const latest = await this.#latest()
        if (latest.stamp !== this.#current.stamp) await this.#follow(latest)
      })
    }
    this.#processes?.onHealth?.()
  }

  async #follow(state: DesiredState): Promise<void> {
    const { log } = this.#context
    const from = this.#current
    this.#trying = state.version
    const known = new Map(from.routes.map(({ name, at }) => [name, at])) // Each name occurs once.
    for (const { name, record, at } of state.routes) {
      if (record === undefined && known.get(name) !== at) changeRouteFile(this.#routesFolder, { forget: name })
    }
    const steps = differences(from, state)
    // These lines depend on the trace switch of module server: log them before it is switched off, or after it is on.
    const silences = steps.some(({ type, about }) => type === 'trace.set' && about === 'server off')
    const logSteps = (): void => {
      for (const step of steps) {
        log.info(`applied ${step.type} of another node${step.about === '' ? '' : `: ${step.about}`}`)
      }
    }
    if (silences) logSteps()
    await this.#processes?.apply(state)
    if (!silences) logSteps()
    if (this.#current === from || state.version > this.#current.version) this.#applied(state)
  }

  /** Call it when the processes of this node have applied a state. */
  #applied(state: DesiredState): void {
    const before = this.#current
    if (!descends(state, before)) {
      this.#context.log.error(`${twoChanges(before)}: kept the one of the engine; lost: ${lostBetween(state, before)}`)
    }
    this.#usedCodesFile.follow(before, state)
    this.#current = state
    this.#tried = Math.max(this.#tried, state.version)
    this.#membership.announce()
  }

  /** Runs an attempt to apply the state, and logs the outcome when it changes. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    const { log } = this.#context
    try {
      await work()
      if (this.#problem !== '') log.info('this node is in sync again')
      this.#problem = ''
      this.#failures = 0
      this.#pause = 0
      this.#isChecked = true
    } catch (error) {
      if (error instanceof RedisAwayError || error instanceof PendingError) return // The next beat retries.
      const reason = reasonOf(error)
      if (reason !== this.#problem) log.error(outOfSync(reason))
      this.#problem = reason
      this.#tried = Math.max(this.#tried, this.#trying)
      this.#failures += 1
      this.#pause = Math.min(this.#failures, longestPause)
      this.#membership.announce()
    }
  }

  /** @param stamp of the state in the engine */
  #checkState(stamp: string): void {
    if (this.#life !== 'starting') {
      this.#pause -= 1
      if (this.#problem === '' && stamp === this.#current.stamp) this.#isChecked = true
      else if (this.#pause <= 0) void this.#reconcile()
      if (this.isReady && this.#judge() === 'give') void this.#shareCredentials()
      this.#errors.sync().catch(() => {}) // The engine is away, which shared.ts logs; the next beat retries.
    }
    const differ = this.#judge() === 'differ'
    if (differ && !this.#hasWarnedOfCredentials) this.#context.log.warn(credentialsDiffer)
    this.#hasWarnedOfCredentials = differ
    this.#processes?.onHealth?.()
  }

  /** Shares the credentials of this node's configuration. The next beat retries after a failure. */
  async #shareCredentials(): Promise<void> {
    if (this.#isSharingCredentials) return
    this.#isSharingCredentials = true
    try {
      const current = this.#current
      const next = nextState(current, { credentials: this.#ownCredentials })
      if (await this.#shared.write(next, current.stamp)) {
        await this.#processes?.apply(next)
        this.#applied(next)
      }
    } catch {
      // The engine is away, which shared.ts logs.
    }
    this.#isSharingCredentials = false
  }

  async #entry(): Promise<NodeEntry> {
    const processes = this.#processes as NodeProcesses // open() sets them before the first beat.
    const summary = await processes.summary()
    return {
      name: this.#name,
      state: this.#life === 'ready' && this.#problem !== '' ? 'behind' : this.#life,
      problem: this.#problem,
      version,
      pid: process.pid,
      ...summary,
      per_second: this.#rate.of(summary.requests),
      seq: this.#current.version,
      stamp: this.#current.stamp,
      tried: this.#tried,
    }
  }
}

/** Another node was faster. The next beat reads the state again. */
class PendingError extends Error {
  override readonly name = 'PendingError'
}

/** @throws HttpError 503 while the engine is away */
function rethrowAnswer(error: unknown): never {
  throw answerFor(error)
}

function twoChanges({ version: number }: DesiredState): string {
  return `two changes ${number} were made, because the shared engine had lost one`
}

/** Lists the changes of the losing state that the winning state does not have. */
function lostBetween(winner: DesiredState, loser: DesiredState): string {
  return differences(winner, loser).map(textOf).join('; ')
}

function textOf({ type, about }: Difference): string {
  return about === '' ? type : `${type} ${about}`
}

/**
 * Returns the warning of a node that is behind.
 * @param problem why it cannot apply the state
 */
export function outOfSync(problem: string): string {
  return `this node is out of sync: ${problem}`
}
