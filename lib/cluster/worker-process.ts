/** A worker from the view of the primary: a process of `node:cluster` with its channel and its log pipes. */
import cluster, { type Worker } from 'node:cluster'
import { realpathSync } from 'node:fs'
import type { Readable } from 'node:stream'
import type { Logs } from '../log/logs.ts'
import { logFds, readLogPipe } from './log-pipe.ts'
import { Peer, portOf, type PeerPort } from './peer.ts'
import { numberVariable } from '../process/process-number.ts'

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
  /** Whether it has loaded the application: it answers calls, and every change waits for it. Set by the primary. */
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
  // Each worker accepts connections itself: a busy worker accepts none, and a primary that accepted for all would hold
  // connections that no worker answers when the last one stops.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  // Resolve links: after an upgrade a link may lead to a version that cannot work under this primary.
  const exec = realpathSync(process.argv[1] as string) // The launcher, which started this process.
  const logPipes = Object.values(logFds).map(() => 'pipe' as const)
  cluster.setupPrimary({ exec, args: [...args], stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...logPipes] })
}

/**
 * Starts a worker. When the system cannot start it, for lack of processes or descriptors, it ends at once.
 * @param number from 1
 * @param logs receive its log lines
 * @param onError called with the error of a damaged message or a failed notification of the worker, which is ignored
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
  // A running worker emits 'error' when it has just ended and a message could not be sent: 'exit' is what matters.
  const failed = new Promise<Error>((resolve) => worker.on('error', resolve))
  if (child.pid === undefined) return notStarted(number, failed)
  const pipeOf = (fd: number): Readable => child.stdio[fd] as Readable // `prepareWorkers` makes the pipes.
  const logsRead = Promise.all([
    readLogPipe(pipeOf(logFds.general), (lines) => logs.general.take(lines)),
    readLogPipe(pipeOf(logFds.access), (lines) => logs.access?.take(lines)),
    readLogPipe(pipeOf(logFds.audit), (lines) => logs.audit.take(lines)),
  ])
  return {
    number,
    serving: false,
    pid: child.pid,
    peer: new Peer(portOf(child), onError),
    ended: Promise.all([exited, logsRead]).then(([ending]) => ending),
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
