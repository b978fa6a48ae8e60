/**
 * Joins a worker to its primary: it uses shared services over the channel to the primary and logs through the pipes.
 */
import cluster from 'node:cluster'
import { resolve } from 'node:path'
import type { App, AppOptions } from '../app.ts'
import { RateLimited } from '../base/rate-limited.ts'
import { reasonOf } from '../base/reason.ts'
import type { LoadedConfig } from '../config/load.ts'
import type { Command } from '../control/commands.ts'
import { auditFile } from '../log/audit-file.ts'
import { openLogs, type Logs } from '../log/logs.ts'
import {
  createClusterAddressLimit,
  createClusterBuckets,
  createClusterCodeThrottle,
  createClusterThrottle,
} from './limits.ts'
import { ClusterBroker } from './events.ts'
import { openClusterJobs } from './jobs.ts'
import { createClusterProcesses } from './readings.ts'
import { logFds, PipeTarget, withoutBlocking } from './log-pipe.ts'
import { listenForNodes } from './nodes.ts'
import { Peer, workerPort } from './peer.ts'
import type { Joining } from './joining.ts'
import { serve } from './remote.ts'
import { createClusterSessionStore } from './sessions.ts'
import { createWorkerState, type StateServedByWorker, type WorkerState } from './state-channel.ts'

/** A worker that has joined. */
export interface JoinedWorker {
  readonly options: AppOptions & { readonly loaded: LoadedConfig }
  readonly peer: Peer
  readonly logs: Logs
}

/**
 * Joins the primary. It may call at once: its calls wait for the app.
 * @param number from 1
 * @throws Error in a process that was not started by a primary
 */
export async function joinPrimary(number: number, app: Promise<App>): Promise<JoinedWorker> {
  let report = (message: string): void => void process.stderr.write(`${message}\n`) // Until the logs are open.
  const peer = new Peer(workerPort(), (error) => report(`the primary process: ${reasonOf(error)}`))
  // Node exits a worker at once when its primary disconnects, unless this is set. Requests may still be running.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true
  let state: WorkerState | undefined
  serve<StateServedByWorker>(peer, 'state', {
    apply: async (received) => {
      const next = state?.timed(received) ?? received.state // At once: the time in it must be current.
      await (await app).follow(next)
    },
    carryOut: async (command) => (await app).carryOut(command),
  })
  peer.on('process.apply', async (command) => void (await (await app).control.apply(command as Command)))
  peer.on('process.stop', async (drains) => void (await app).stop(drains as boolean))
  peer.on('process.alive', () => {})
  peer.on('process.faults', async () => (await app).faults())
  const nodesOf = listenForNodes(peer)
  const joining = (await peer.call('process.join')) as Joining // The answer of `primary.ts`.
  const { loaded, configFile, appKey, code, sharedPassword, count, listenFd, setupToken, nodes } = joining
  state = createWorkerState(peer, joining.isShared)
  const { config } = loaded
  const logFolder = resolve(loaded.folder, config['paths.log'])
  const targets = {
    general: new PipeTarget(withoutBlocking(logFds.general), resolve(logFolder, config['log.file'])),
    access: new PipeTarget(withoutBlocking(logFds.access), resolve(logFolder, config['access_log.file'])),
    audit: new PipeTarget(withoutBlocking(logFds.audit), resolve(logFolder, auditFile)),
  }
  const logs = openLogs(config, logFolder, { targets, number })
  const damaged = new RateLimited(logs.module('error').error, 1000)
  report = (message) => damaged.say(message)
  const options: JoinedWorker['options'] = {
    loaded: { ...loaded, documents: [] },
    configFile,
    ...(sharedPassword !== undefined && { sharedPassword }),
    ...(listenFd !== undefined && { listenFd }),
    worker: {
      number,
      count,
      appKey,
      code,
      logs,
      backends: {
        broker: new ClusterBroker(peer),
        durableBroker: new ClusterBroker(peer, 'durable'),
        openBuckets: createClusterBuckets(peer),
        openJobStore: () => openClusterJobs(peer),
        openStoreHere: (location) => createClusterSessionStore(peer, location),
      },
      store: state,
      machine: state,
      state: state.timed(joining.state),
      nodes: nodes === undefined ? undefined : nodesOf(nodes),
      joinProcesses: (thisProcess) => createClusterProcesses(peer, thisProcess),
      setupToken,
      loginThrottle: createClusterThrottle(peer),
      codeThrottle: createClusterCodeThrottle(peer),
      addressLimit: createClusterAddressLimit(peer, config['server.max_connections_per_ip']),
      beforeListening: async (faults) => void (await peer.call('process.begins', faults)),
    },
  }
  return { options, peer, logs }
}
