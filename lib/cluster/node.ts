/**
 * A node: this server among those that share an engine, either a single process or a primary with its workers.
 *
 * Once a second a node writes its entry, and learns the stamp of the state in the engine and the list of nodes. A
 * message makes it look at once. When the state is not the one that the node has applied, the node applies it in its
 * processes. A node that fails to apply it says why, is not ready, and tries again.
 *
 * The newest state counts, wherever it is: when the engine comes back with an older state or none, the node writes its
 * own.
 */
import { performance } from 'node:perf_hooks'
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
import { answerFor, awayError } from '../redis/errors.ts'
import { isTemporary, RedisAwayError } from '../redis/errors.ts'
import { listRefused, Membership, newState } from './membership.ts'
import { isLive, mayApply, nodeKeys, type ListedNode, type NodeEntry, type SeenNode } from './node-list.ts'
import { Rate } from './rate.ts'
import { ForgedStateError, RedisState } from './redis-state.ts'
import { SharedErrors } from './shared-errors.ts'

/** The parts that each user of the engine needs. */
export interface SharedParts {
  readonly loaded: LoadedConfig
  readonly appKey: string
  readonly redis: Redis
  /** The prefix of every key. */
  readonly prefix: string
  /** The prefix of every channel of PUBLISH, which ignores databases. */
  readonly place: string
  /** Of module `server`. */
  readonly log: ModuleLogger
}

/** The processes of this node. */
interface NodeProcesses {
  /** Applies a state in all of them. When it rejects, they keep the previous state. */
  apply(state: DesiredState): Promise<unknown>
  /** Sums up their readings. */
  summary(): Promise<Summary>
  /** Their errors by cause. */
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
  /** Returns all nodes of the last hour in the order of names. */
  list(): Promise<readonly ListedNode[]>
  /** Returns the errors by cause of the other nodes, a list each. Rejects while the engine is away. */
  errors(): Promise<readonly (readonly ErrorGroup[])[]>
  /** Clears those of the other nodes. Rejects as above. */
  clearErrors(): Promise<void>
}

/** The most beats between a failure and the next attempt. */
const longestPause = 10
/** The warning when the credentials of the configuration are not the shared ones. */
export const credentialsDiffer =
  'admin.user, admin.password and admin.secret here are not those that the other nodes share: a sign-in here does not'
  + ' count there; give all nodes the same ones, or leave them out of svc.json here'
const engineLost = 'the shared engine has lost what the nodes have in common'

/** A node. Call `open()` to begin. */
export class Node implements NodesView, StateStore {
  readonly isShared = true
  readonly #parts: SharedParts
  readonly #routesFolder: string
  readonly #membership: Membership
  readonly #shared: RedisState
  readonly #errors: SharedErrors
  readonly #writing = new SerialQueue()
  readonly #rate = new Rate()
  #processes: NodeProcesses | undefined
  #own = initialState
  #ownCredentials: AdminCredentials
  /** The version that is being applied. */
  #trying = 0
  /** The latest version that was applied or has failed. */
  #tried = 0
  /** The latest state of which a client was told that every node has it. */
  #answered = initialState
  #name: string
  #life: 'starting' | 'ready' | 'stopping' = 'starting'
  /** Whether the engine has had the state of this node since the last connection to it. */
  #isChecked = false
  #problem = ''
  #failures = 0
  #pause = 0
  #toldOfCredentials = false
  #isGiving = false
  #aligning: Promise<void> | undefined
  /** Whether to read the state again. */
  #isDue = false

  /** @param routesFolder `paths.routes`, absolute */
  constructor(parts: SharedParts, routesFolder: string) {
    const { redis, prefix, place, log, loaded: { config }, appKey } = parts
    const { 'admin.user': user, 'admin.password': password, 'admin.secret': secret } = config
    this.#parts = parts
    this.#routesFolder = routesFolder
    this.#ownCredentials = { user, password, secret }
    const keys = nodeKeys(prefix, place)
    this.#membership = new Membership({
      redis,
      keys,
      log,
      entry: () => this.#entry(),
      onBeat: (stamp) => this.#look(stamp),
      onNewState: () => {
        if (this.#life !== 'starting') void this.#align()
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
      own: () => (this.#processes as NodeProcesses).errors(), // open() sets them before the first beat.
      clearOwn: (beforeMs) => (this.#processes as NodeProcesses).clearErrors(beforeMs),
    })
    this.#name = nodeName(config['server.port'])
  }

  get isReady(): boolean {
    return this.#life !== 'starting' && this.#isChecked && this.#problem === '' && this.#membership.refusal === ''
  }

  /** The state that the processes of this node have applied, or with which they load. */
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
    // When the last reload is unknown, the node reloads once more when the engine is there.
    const found = await this.#shared.read().catch(() => initialState)
    this.#own = { ...initialState, reload: found.reload }
  }

  /** Applies the state. Call it when the application is loaded. Never rejects: failures are repeated later. */
  async join(): Promise<void> {
    this.#life = 'ready'
    await this.#align()
    if (this.#shared.isOfPreviousKey) {
      await this.#shared.write(this.#own, this.#own.stamp).catch(() => {}) // The previous key still verifies the state.
    }
    await this.#membership.beat()
  }

  /** Call it when the server listens. @param port 0: it listens on a Unix socket */
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
      throw isTemporary(error) ? answerFor(error) : awayError(notAsOthers(reasonOf(error)), error)
    }
  }

  write(next: DesiredState, file?: RouteFileChange): Promise<boolean> {
    return this.#writing.run(async () => {
      if (next.credentials !== undefined && differences(this.#own, next).some(({ type }) => type === 'admin.secret')) {
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
    while (pending().length > 0 && descends(this.#own, wanted) && performance.now() < deadline) {
      await endsWithin(deadline - performance.now(), this.#membership.nextBeat())
    }
    if (!descends(this.#own, wanted)) return ['the shared engine lost it, and another change took its place']
    const failed = others().filter((node) => isLive(node) && hasFailed(node))
    const missing = [
      ...failed.map(({ entry }) => `node ${entry.name}: ${entry.problem}`),
      ...pending().map(({ entry }) => `node ${entry.name}: it did not answer within ${withinMs / 1000} s`),
    ]
    // Changes may wait at the same time, and an earlier one end last.
    if (missing.length === 0 && wanted.version > this.#answered.version) this.#answered = wanted
    return missing
  }

  /** Whether a node has applied the wanted state, or one that this node knows to descend from it. */
  #hasApplied({ entry: { stamp, seq } }: SeenNode, wanted: DesiredState): boolean {
    const { version, ...own } = this.#own
    const line = [own.stamp, ...own.ancestors]
    const at = line.indexOf(wanted.stamp)
    // A state names a limited number of ancestors. Beyond them, the version decides.
    return at === -1 ? seq >= wanted.version && seq <= version : line.indexOf(stamp) !== -1 && line.indexOf(stamp) <= at
  }

  #ids(): string[] {
    return this.#membership.nodes.map(({ id }) => id)
  }

  #judge(): ReturnType<typeof judge> {
    return judge(this.#ownCredentials, this.#own.credentials)
  }

  /** Returns the state that counts. Rejects as the client does, and when the engine's state cannot be used. */
  async #latest(): Promise<DesiredState> {
    const own = this.#own
    try {
      const found = await this.#shared.read()
      if (found.stamp === own.stamp) return own
      if (found.version > own.version) return found
      if (found.version === own.version) return await this.#choose(found)
      await this.#putBack(found.stamp)
      this.#parts.log.warn(`${engineLost}: put back as it was after change ${own.version}`)
      return own
    } catch (error) {
      if (!(error instanceof ForgedStateError) || own.version === 0) throw error
      this.#parts.log.error(`${error.message}; put back as it was after change ${own.version}`)
      await this.#putBack(error.stamp)
      return own
    }
  }

  /** @throws PendingError where another node was faster */
  async #putBack(expected: string): Promise<void> {
    if (!(await this.#shared.write(this.#own, expected))) throw new PendingError(engineLost)
  }

  /**
   * Chooses between two states of the same version, one of which was made on an engine that had lost the other. If both
   * were made from the same state, the engine's counts, unless a client was told that every node has this node's.
   * Otherwise this node writes its own as a new version.
   */
  async #choose(found: DesiredState): Promise<DesiredState> {
    const { log } = this.#parts
    const own = this.#own
    if (found.ancestors[0] === own.ancestors[0] && own.stamp !== this.#answered.stamp) return found
    const next = nextState(own, {})
    if (!(await this.#shared.write(next, found.stamp))) throw new PendingError(engineLost)
    log.error(`${twoChanges(own)}: this node's counts; lost: ${lostBetween(own, found)}`)
    return next
  }

  /** Applies the state that counts. Never rejects: failures are logged and repeated. */
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
    const { log } = this.#parts
    const from = this.#own
    this.#trying = state.version
    const known = new Map(from.routes.map(({ name, at }) => [name, at])) // Each name occurs once.
    for (const { name, record, at } of state.routes) {
      if (record === undefined && known.get(name) !== at) changeRouteFile(this.#routesFolder, { forget: name })
    }
    const steps = differences(from, state)
    // These lines pass through the trace switch of module server: log them before it goes off, or after it goes on.
    const silences = steps.some(({ type, about }) => type === 'trace.set' && about === 'server off')
    const logSteps = (): void => {
      for (const step of steps) {
        log.info(`${step.type} of another node was taken up${step.about === '' ? '' : `: ${step.about}`}`)
      }
    }
    if (silences) logSteps()
    await this.#processes?.apply(state)
    if (!silences) logSteps()
    if (this.#own === from || state.version > this.#own.version) this.#applied(state)
  }

  /** Call it when the processes of this node have applied a state. */
  #applied(state: DesiredState): void {
    const before = this.#own
    if (!descends(state, before)) {
      this.#parts.log.error(`${twoChanges(before)}: its counts; lost: ${lostBetween(state, before)}`)
    }
    this.#own = state
    this.#tried = Math.max(this.#tried, state.version)
    this.#membership.announce()
  }

  /** Runs an attempt to apply the state, and logs the outcome when it changes. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    const { log } = this.#parts
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
      this.#errors.look().catch(() => {}) // The engine is away, which shared.ts logs; the next beat looks again.
    }
    const differ = this.#judge() === 'differ'
    if (differ && !this.#toldOfCredentials) this.#parts.log.warn(credentialsDiffer)
    this.#toldOfCredentials = differ
    this.#processes?.onHealth?.()
  }

  /** Shares the credentials of this node's configuration. The next beat repeats it after a failure. */
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
      // The engine is away, which shared.ts logs.
    }
    this.#isGiving = false
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
      seq: this.#own.version,
      stamp: this.#own.stamp,
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
  return `two changes ${number} were made, since the shared engine had lost one`
}

/** Lists the changes of a state that the state that counts does not have. */
function lostBetween(counts: DesiredState, loses: DesiredState): string {
  return differences(counts, loses).map(textOf).join('; ')
}

function textOf({ type, about }: Difference): string {
  return about === '' ? type : `${type} ${about}`
}

/**
 * Returns the warning of a node that is behind.
 * @param problem why it cannot apply the state
 */
export function notAsOthers(problem: string): string {
  return `this node is not as the others: ${problem}`
}
