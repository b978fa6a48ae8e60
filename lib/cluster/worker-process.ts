/**
 * One worker, as the primary has it: a process that `node:cluster` made, with its channel and its log pipes.
 */
import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import type { Logs } from '../log/logs.ts'
import { logFds, readLogPipe } from './log-pipe.ts'
import { createPeer, portOf, type Peer } from './peer.ts'

/** How a process ended: with a status, or by a signal. */
export interface Ending {
  readonly status: number | null
  readonly signal: string | null
}

export interface WorkerProcess {
  readonly pid: number
  readonly peer: Peer
  /** Resolves when the process has ended and all that it logged has been taken. */
  readonly ended: Promise<Ending>
  /** Sends a signal. Does nothing when the process has ended. */
  kill(signal: NodeJS.Signals): void
}

/** The environment variable that tells a worker its number. */
export const numberVariable = 'SVC_PROCESS'

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
 * Starts a worker.
 * @param number what it is called by, from 1
 * @param logs take what it logs
 */
export function startWorker(number: number, logs: Logs): WorkerProcess {
  const worker = cluster.fork({ [numberVariable]: String(number) })
  const { process: child } = worker
  const pipeOf = (fd: number): Readable => child.stdio[fd] as Readable // Two pipes, by `prepareWorkers`.
  const access = logs.access
  const taken = [
    readLogPipe(pipeOf(logFds.general), (lines) => logs.general.take(lines)),
    readLogPipe(pipeOf(logFds.access), (lines) => access?.take(lines)),
  ]
  return {
    pid: child.pid ?? 0,
    peer: createPeer(portOf(worker)),
    ended: endingOf(worker, taken),
    kill: (signal) => void child.kill(signal),
  }
}

async function endingOf(worker: Worker, taken: readonly Promise<unknown>[]): Promise<Ending> {
  const [status, signal] = (await once(worker, 'exit')) as [number | null, string | null]
  await Promise.all(taken)
  return { status, signal }
}
