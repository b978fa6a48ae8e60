/**
 * What an app is given when it is one of several processes of a server: what they share comes from outside then, where
 * it otherwise is the app's own.
 */
import type { LoginThrottle } from './admin/throttle.ts'
import type { AppKey } from './config/app-key.ts'
import type { ProcessPlace, Seams } from './application/build.ts'
import type { AdminState, Change, Relay } from './control/relay.ts'
import type { AddressLimit } from './core/address-limit.ts'
import type { Logs } from './log/logs.ts'
import type { JoinProcesses } from './metrics/processes.ts'
import type { NodesView } from './nodes/contract.ts'

export interface ProcessPart extends ProcessPlace {
  /** The same in all of them, also where it is a random one. */
  readonly appKey: AppKey
  readonly logs: Logs
  readonly seams: Seams
  readonly relay: Relay
  /** The nodes, where servers share an engine; the primary is one of them. */
  readonly nodes: NodesView | undefined
  /** Joins the figures of this process with those of the others. */
  readonly joinProcesses: JoinProcesses
  /** What a setup from afar must show. */
  readonly setupToken: string
  readonly loginThrottle: LoginThrottle
  /** Counts the connections of each address, where they are limited. */
  readonly addressLimit: AddressLimit
  /** What the other processes were told since the start of the server. */
  readonly missed: { readonly changes: readonly Change[]; readonly admin?: AdminState }
  /** Called when the application is loaded. Resolves when every later change will be waited for. */
  readonly beforeListening: () => Promise<void>
}
