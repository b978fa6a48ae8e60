/**
 * One worker, as the primary has it: a process that `node:cluster` made, with its channel and its log pipes.
 */
import cluster, { type Worker } from 'node:cluster'
import type { Readable } from 'node:stream'
import type { Logs } from '../log/logs.ts'
import { logFds, readLogPipe } from './log-pipe.ts'
import { createPeer, portOf, type Peer, type PeerPort } from './peer.ts'
import { numberVariable } from './process-number.ts'

/** How a process ended: with a status, or by a signal; or why it never began. */
export interface Ending {
  readonly status: number | null
  readonly signal: string | null
  readonly error?: Error
}

export interface WorkerProcess {
  /** 0: it could not be started. */
  readonly pid: number
  readonly peer: Peer
  /** Resolves when the process has ended and all that it logged has been taken. */
  readonly ended: Promise<Ending>
  /** Sends a signal. Does nothing when the process has ended. */
  kill(signal: NodeJS.Signals): void
}

/**
 * Prepares this process for making workers; to be called once, before the first.
 * @param args what the workers are run with: those of this process
 */
export function prepareWorkers(args: readonly string[]): void {
  // Each worker accepts for itself. A primary that accepts for all holds connections while the last of them stops, which
  // nobody answers then; and a worker that is busy takes none.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({ args: [...args], stdio: ['inherit', 'inherit', 'inherit', 'ipc', 'pipe', 'pipe'] })
}

/**
 * Starts a worker. Where the system starts none, for want of processes or descriptors say, it has ended at once.
 * @param number what it is called by, from 1
 * @param logs take what it logs
 */
export function startWorker(number: number, logs: Logs): WorkerProcess {
  let worker: Worker
  try {
    worker = cluster.fork({ [numberVariable]: String(number) })
  } catch (error) {
    return notStarted(Promise.resolve(error as Error)) // Node throws Errors.
  }
  const { process: child } = worker
  const exited = new Promise<Ending>((resolve) => worker.once('exit', (status, signal) => resolve({ status, signal })))
  // Of one that runs this says that something could not be sent, since it has just ended: its end is what counts.
  const failed = new Promise<Error>((resolve) => worker.on('error', resolve))
  if (child.pid === undefined) return notStarted(failed)
  const pipeOf = (fd: number): Readable => child.stdio[fd] as Readable // Two pipes, by `prepareWorkers`.
  const read = (fd: number, log: { take(lines: string): void } | undefined): Promise<number> =>
    readLogPipe(
      pipeOf(fd),
      (lines) => log?.take(lines),
      () => {
        logs.module('server').error(`process ${number} wrote into the pipe of its log what is no line: it is killed`)
        child.kill('SIGKILL')
      },
    )
  const taken = Promise.all([read(logFds.general, logs.general), read(logFds.access, logs.access)])
  return {
    pid: child.pid,
    peer: createPeer(portOf(worker)),
    ended: Promise.all([exited, taken]).then(([ending]) => ending),
    kill: (signal) => void child.kill(signal),
  }
}

function notStarted(failed: Promise<Error>): WorkerProcess {
  const closed: PeerPort = { send: () => {}, onMessage: () => {}, onClose: (listener) => void setImmediate(listener) }
  return {
    pid: 0,
    peer: createPeer(closed),
    ended: failed.then((error) => ({ status: null, signal: null, error })),
    kill: () => {},
  }
}
