/**
 * What an app is given when it is one of several processes of a server: what they share comes from outside then, where
 * it otherwise is the app's own.
 */
import type { LoginThrottle } from '../admin/throttle.ts'
import type { AppKey } from '../config/app-key.ts'
import type { ProcessPlace, Seams } from '../application/build.ts'
import type { Machine } from '../application/changes.ts'
import type { DesiredState } from '../application/desired-state.ts'
import type { StateStore } from '../application/state-store.ts'
import type { AddressLimit } from '../core/address-limit.ts'
import type { Logs } from '../log/logs.ts'
import type { JoinProcesses } from '../metrics/processes.ts'
import type { NodesView } from './node.ts'

export interface ProcessPart extends ProcessPlace {
  /** The same in all of them, also where it is a random one. */
  readonly appKey: AppKey
  readonly logs: Logs
  readonly seams: Seams
  /** Where the desired state lies, and the state with which this process begins. */
  readonly store: StateStore
  readonly state: DesiredState
  readonly machine: Machine
  /** The nodes, where servers share an engine; the primary is one of them. */
  readonly nodes: NodesView | undefined
  /** Joins the figures of this process with those of the others. */
  readonly joinProcesses: JoinProcesses
  /** What a setup from afar must show. */
  readonly setupToken: string
  readonly loginThrottle: LoginThrottle
  /** Counts the connections of each address, where they are limited. */
  readonly addressLimit: AddressLimit
  /** Called when the application is loaded. Resolves when every later change will be waited for. */
  readonly beforeListening: () => Promise<void>
}
