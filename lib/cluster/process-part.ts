/**
 * The parts of a server with several processes: those that an app is given in a worker, and the answer to its joining.
 */
import type { LoginThrottle } from '../access/throttle.ts'
import type { AppKey } from '../config/app-key.ts'
import type { ProcessPlace, Backends } from '../composition/build.ts'
import type { Machine } from '../control/changes.ts'
import type { DesiredState } from '../control/desired-state.ts'
import type { StateStore } from '../control/state-store.ts'
import type { AddressLimit } from '../core/address-limit.ts'
import type { Logs } from '../log/logs.ts'
import type { JoinProcesses } from '../metrics/processes.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { NodesView } from './node.ts'
import type { NodesHealth } from './nodes.ts'
import type { TimedState } from './state-channel.ts'

/** The parts that a worker shares with other processes. A single process makes its own. */
export interface ProcessPart extends ProcessPlace {
  /** The same in all processes, even when it is random. */
  readonly appKey: AppKey
  readonly logs: Logs
  readonly backends: Backends
  /** Reaches the desired state in the primary. */
  readonly store: StateStore
  /** The state that this process begins with. */
  readonly state: DesiredState
  readonly machine: Machine
  /** The list of nodes when servers share an engine. */
  readonly nodes: NodesView | undefined
  /** Connects the readings of this process with those of the others. */
  readonly joinProcesses: JoinProcesses
  /** The token that setup from another machine requires. */
  readonly setupToken: string
  readonly loginThrottle: LoginThrottle
  /** Limits the connections of each address. */
  readonly addressLimit: AddressLimit
  /**
   * Called when the application is loaded. Resolves when the primary waits for this process at every change; rejects
   * when this process must not serve, since the others serve what it cannot load.
   * @param faults what it cannot load, as `Application.faults` has it
   */
  readonly beforeListening: (faults: readonly string[]) => Promise<void>
}

/**
 * The answer to a worker that joins: all that must be the same in every process, so that a worker reads no
 * configuration of its own. A worker that is started months later runs with the same settings as the others.
 */
export interface Joining {
  /** The configuration as the primary read it. */
  readonly loaded: Omit<LoadedConfig, 'documents'>
  readonly configFile: string
  readonly appKey: AppKey
  /** Replaces the password of `shared.url`. */
  readonly sharedPassword?: string
  readonly count: number
  /** The descriptor of the passed socket in the primary. */
  readonly listenFd?: number
  readonly setupToken: string
  readonly state: TimedState
  /** Whether several machines share the desired state. */
  readonly isShared: boolean
  /** The health of the node when servers share an engine. */
  readonly nodes?: NodesHealth
}
