/**
 * What a worker is told when it begins: all that the processes of a server must have alike, so that it reads no
 * configuration of its own. One that takes the place of another months later runs as those beside it do.
 */
import type { AppKey } from '../config/app-key.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { NodesHealth } from './nodes.ts'
import type { TimedState } from './state-channel.ts'

export interface Joining {
  /** The configuration as the primary read it. */
  readonly loaded: Omit<LoadedConfig, 'document'>
  readonly configFile: string
  readonly appKey: AppKey
  /** The password of `shared.url`, where it does not stand there. */
  readonly sharedPassword?: string
  readonly count: number
  /** The descriptor of the passed socket in the primary, where there is one. */
  readonly listenFd?: number
  /** Where that is in the file system, where it is a Unix socket. */
  readonly listenPath?: string
  readonly setupToken: string
  /** The desired state, and whether several machines share it. */
  readonly state: TimedState
  readonly isShared: boolean
  /** What is known of the nodes, where servers share an engine. */
  readonly nodes?: NodesHealth
}
