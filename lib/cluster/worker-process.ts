/** A worker as the primary has it: a process of `node:cluster` with its channel and its log pipes. */
import cluster, { type Worker } from 'node:cluster'
import { realpathSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Logs } from '../log/logs.ts'
import { logFds, readLogPipe } from './log-pipe.ts'
import { Peer, portOf, type PeerPort } from './peer.ts'
import { numberVariable } from './process-number.ts'

/** How a process ended: with a status or by a signal. `error`: it could not be started. */
export interface Ending {
  readonly status: number | null
  readonly signal: string | null
  readonly error?: Error
}

/** A worker that was started. */
export interface WorkerProcess {
  /** From 1. */
  readonly number: number
  /** Whether it has loaded the application: it can be asked, and every change waits for it. The primary sets it. */
  serving: boolean
  /** 0 when the process could not be started. */
  readonly pid: number
  readonly peer: Peer
  /** Resolves when the process has ended and all its log lines have been read. */
  readonly ended: Promise<Ending>
  /** Sends a signal. Does nothing when the process has ended. */
  kill(signal: NodeJS.Signals): void
}

/**
 * Prepares this process for starting workers. Call it once.
 * @param args the arguments of the workers, the same as those of this process
 */
export function prepareWorkers(args: readonly string[]): void {
  // Each worker accepts connections by itself: a busy worker accepts none, and a primary that accepted for all would
  // hold connections that nobody answers when the last worker stops.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  // Without links: after an upgrade one may lead to a version that cannot work under this primary.
  const exec = realpathSync(process.argv[1] as string) // The launcher, which has started this.
  const ofLogs = Object.values(logFds).map(() => 'pipe' as const)
  cluster.setupPrimary({ exec, args: [...args], stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...ofLogs] })
}

/**
 * Starts a worker. When the system cannot start it, for want of processes or descriptors say, it has ended at once.
 * @param number from 1
 * @param logs receive its log lines
 * @param onError called with what is wrong with messages of the worker that have no answer; they are ignored
 */
export function startWorker(number: number, logs: Logs, onError: (error: unknown) => void): WorkerProcess {
  let worker: Worker
  try {
    worker = cluster.fork({ [numberVariable]: String(number) })
  } catch (error) {
    return notStarted(number, Promise.resolve(error as Error)) // Node throws Errors.
  }
  const { process: child } = worker
  const exited = new Promise<Ending>((resolve) => worker.once('exit', (status, signal) => resolve({ status, signal })))
  // A running worker emits 'error' when a message could not be sent because it has just ended. Its end is what counts.
  const failed = new Promise<Error>((resolve) => worker.on('error', resolve))
  if (child.pid === undefined) return notStarted(number, failed)
  const pipeOf = (fd: number): Readable => child.stdio[fd] as Readable // `prepareWorkers` makes the pipes.
  const taken = Promise.all([
    readLogPipe(pipeOf(logFds.general), (lines) => logs.general.take(lines)),
    readLogPipe(pipeOf(logFds.access), (lines) => logs.access?.take(lines)),
    readLogPipe(pipeOf(logFds.audit), (lines) => logs.audit.take(lines)),
  ])
  return {
    number,
    serving: false,
    pid: child.pid,
    peer: new Peer(portOf(child), onError),
    ended: Promise.all([exited, taken]).then(([ending]) => ending),
    kill: (signal) => void child.kill(signal),
  }
}

function notStarted(number: number, failed: Promise<Error>): WorkerProcess {
  const closed: PeerPort = { send: () => {}, onMessage: () => {}, onClose: (listener) => void setImmediate(listener) }
  return {
    number,
    serving: false,
    pid: 0,
    peer: new Peer(closed),
    ended: failed.then((error) => ({ status: null, signal: null, error })),
    kill: () => {},
  }
}
