/** How a worker joins a server with several processes: what it shares with them, and the primary's answer. */
import type { CodeThrottle } from '../access/code-throttle.ts'
import type { LoginThrottle } from '../access/throttle.ts'
import type { AppKey } from '../config/app-key.ts'
import type { Backends } from '../composition/backends.ts'
import type { ProcessIndex } from '../composition/application-parts.ts'
import type { Machine } from '../control/changes.ts'
import type { DesiredState } from '../control/desired-state.ts'
import type { StateStore } from '../control/state-store.ts'
import type { AddressLimit } from '../core/address-limit.ts'
import type { Logs } from '../log/logs.ts'
import type { JoinProcesses } from '../metrics/processes.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { NodesView } from '../nodes/node.ts'
import type { CodeDigest } from '../proof/code-digest.ts'
import type { NodesHealth } from './nodes.ts'
import type { TimedState } from './state-channel.ts'

/** What the app of a worker shares with the other processes. The app of a single process creates these itself. */
export interface Worker extends ProcessIndex {
  /** The same in all processes, even when it is random. */
  readonly appKey: AppKey
  readonly logs: Logs
  /** The digests of the code, as the primary read it at its start. */
  readonly code: CodeDigest
  readonly backends: Backends
  /** Reaches the desired state in the primary. */
  readonly store: StateStore
  /** The initial state of this process. */
  readonly state: DesiredState
  readonly machine: Machine
  /** The list of nodes; undefined when no engine is shared. */
  readonly nodes: NodesView | undefined
  /** Connects the readings of this process with those of the others. */
  readonly joinProcesses: JoinProcesses
  /** The token that setup from another machine requires. */
  readonly setupToken: string
  readonly loginThrottle: LoginThrottle
  readonly codeThrottle: CodeThrottle
  /** Limits the connections of each address. */
  readonly addressLimit: AddressLimit
  /**
   * Called when the application is loaded. Resolves when every change includes this process; rejects when this process
   * must not serve, because it cannot load what the others serve.
   * @param faults what it cannot load, as in `Application.faults`
   */
  readonly beforeListening: (faults: readonly string[]) => Promise<void>
}

/**
 * The answer to a worker that joins: everything that must be the same in all processes. A worker reads no configuration
 * file, so one that is started months later runs with the same settings as the others.
 */
export interface Joining {
  /** The configuration as the primary read it. */
  readonly loaded: Omit<LoadedConfig, 'documents'>
  readonly configFile: string
  readonly appKey: AppKey
  readonly code: CodeDigest
  /** Replaces the password of `shared.url`. */
  readonly sharedPassword?: string
  readonly count: number
  /** The descriptor of the passed socket in the primary. */
  readonly listenFd?: number
  readonly setupToken: string
  readonly state: TimedState
  /** Whether several machines share the desired state. */
  readonly isShared: boolean
  /** The health of the node; missing when no engine is shared. */
  readonly nodes?: NodesHealth
}
