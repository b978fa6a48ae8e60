/**
 * Makes the parts of a worker: it reaches the shared parts over the channel to the primary and logs through the pipes.
 */
import cluster from 'node:cluster'
import { resolve } from 'node:path'
import type { AppOptions } from '../app.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Command, MachineCommandType } from '../application/commands.ts'
import type { DesiredState } from '../application/desired-state.ts'
import { openLogs, type Logs } from '../log/logs.ts'
import { createClusterAddressLimit, createClusterBuckets, createClusterThrottle } from './limits.ts'
import { createClusterBroker } from './events.ts'
import { createClusterProcesses } from './readings.ts'
import { logFds, PipeTarget, withoutBlocking } from './log-pipe.ts'
import { listenForNodes } from './nodes.ts'
import { createPeer, workerPort, type Peer } from './peer.ts'
import type { Joining } from './process-part.ts'
import { serve } from './remote.ts'
import { createClusterSessionStore } from './sessions.ts'
import { createWorkerState, type StateServedByWorker, type WorkerState } from './state-channel.ts'

/** The parts of this worker. */
export interface WorkerParts {
  readonly options: AppOptions & { readonly loaded: LoadedConfig }
  readonly peer: Peer
  readonly logs: Logs
}

/** The calls of the primary to this worker. They may come as soon as it has joined, before there is an app. */
interface WorkerDuties {
  /** Applies a state made by another process. */
  readonly follow: (state: DesiredState) => Promise<void>
  /** Carries out a command about the machine that another process has carried out. */
  readonly carryOut: (command: Command<MachineCommandType>) => Promise<void>
  /** Carries out the command of a signal. */
  readonly apply: (command: Command) => Promise<void>
  /** Stops gracefully. @param drains whether to serve on for `server.drain_delay_s` first */
  readonly stop: (drains: boolean) => void
}

/**
 * Joins the primary.
 * @param number from 1
 * @throws Error in a process that was not started by a primary
 */
export async function joinPrimary(number: number, duties: WorkerDuties): Promise<WorkerParts> {
  const peer = createPeer(workerPort())
  // Node exits a worker at once when its primary disconnects, unless this is set. Requests may still be running.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  let state: WorkerState | undefined
  serve<StateServedByWorker>(peer, 'state', {
    apply: (told) => duties.follow(state?.timed(told) ?? told.state),
    carryOut: duties.carryOut,
  })
  peer.on('process.apply', (command) => duties.apply(command as Command))
  peer.on('process.stop', (drains) => duties.stop(drains as boolean))
  peer.on('process.alive', () => {})
  const nodesOf = listenForNodes(peer)
  const joining = (await peer.call('process.join')) as Joining // The answer of `primary.ts`.
  const { loaded, configFile, appKey, sharedPassword, count, listenFd, listenPath, setupToken, nodes } = joining
  state = createWorkerState(peer, joining.isShared)
  const { config } = loaded
  const logFolder = resolve(loaded.folder, config['paths.log'])
  const logs = openLogs(config, logFolder, {
    general: new PipeTarget(withoutBlocking(logFds.general), resolve(logFolder, config['log.file'])),
    access: new PipeTarget(withoutBlocking(logFds.access), resolve(logFolder, config['access_log.file'])),
  })
  const options: WorkerParts['options'] = {
    loaded: { ...loaded, documents: [] },
    configFile,
    ...(sharedPassword !== undefined && { sharedPassword }),
    ...(listenFd !== undefined && { listenFd }),
    ...(listenPath !== undefined && { listenPath }),
    part: {
      number,
      count,
      appKey,
      logs,
      seams: {
        broker: createClusterBroker(peer),
        openBuckets: createClusterBuckets(peer),
        openStoreHere: (place) => createClusterSessionStore(peer, place),
      },
      store: state,
      machine: state,
      state: state.timed(joining.state),
      nodes: nodes === undefined ? undefined : nodesOf(nodes),
      joinProcesses: (own) => createClusterProcesses(peer, own),
      setupToken,
      loginThrottle: createClusterThrottle(peer),
      addressLimit: createClusterAddressLimit(peer, config['server.max_connections_per_ip']),
      beforeListening: async () => void (await peer.call('process.begins')),
    },
  }
  return { options, peer, logs }
}
