/**
 * Keeps a number of workers running: one that ends is replaced, the sooner the longer it had served.
 *
 * Surprise: at the first start nothing is replaced. What ends one worker then, a route file that is no JSON say, ends all
 * of them, and the server ends with that worker's status, as a server of one process does.
 */
import { performance } from 'node:perf_hooks'
import type { ModuleLogger } from '../log/logger.ts'
import type { Ending, WorkerProcess } from './worker-process.ts'

export interface SupervisorOptions {
  /** How many workers, from 1. */
  readonly count: number
  /** Starts the worker of a number, from 1. */
  readonly start: (number: number) => WorkerProcess
  readonly log: ModuleLogger
  /** Whether the server must end when none of them serves any more: Node closes a passed socket with the last that has it. */
  readonly endsWithLast: boolean
  /** The longest that a stop may take, in milliseconds. */
  readonly stopTimeoutMs: number
  /** Called when every worker serves for the first time. */
  readonly onReady: () => void
  /** Called when a stop begins that nobody asked for. */
  readonly onGivenUp: () => void
  /** A clock in milliseconds that does not jump; `performance.now` unless given. */
  readonly now?: () => number
}

/** A worker in its place. */
export interface Place {
  readonly number: number
  /** Undefined between two workers. */
  readonly worker: WorkerProcess | undefined
  /** Whether it answers requests. */
  readonly serving: boolean
  /** Whether its end was asked for. */
  readonly ending: boolean
}

export interface Supervisor {
  readonly places: readonly Place[]
  /** Notes that the worker of a number serves from now on. */
  serves(number: number): void
  /** Notes that the worker of a number is about to end, as it was asked to. */
  ends(number: number): void
  /** Lets a worker end gracefully; another takes its place. */
  replace(number: number): void
  /** Stops all. Resolves with the exit status when the last has ended. A second call joins the first. */
  stop(): Promise<number>
  /** Ends all at once. */
  kill(): void
  /** Resolves with the exit status when all have ended. */
  readonly done: Promise<number>
}

interface Slot {
  readonly number: number
  worker: WorkerProcess | undefined
  serving: boolean
  startedAt: number
  /** How often in a row it ended soon after its start. */
  failures: number
  restart: NodeJS.Timeout | undefined
  /** Whether its end was asked for. */
  ending: boolean
}

/** A worker that ends sooner after its start has failed to start, whatever it did meanwhile. */
const soonMs = 10_000
const firstDelayMs = 100
const longestDelayMs = 30_000
/** After so many in a row the server is given up, unless others serve well. */
const mostFailures = 5
/** What a worker gets beyond the time of its own stop before it is killed. */
const graceMs = 2000

/** Starts the workers. */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { count, log, stopTimeoutMs, now = () => performance.now() } = options
  const slots = Array.from({ length: count }, (_, at): Slot => {
    return { number: at + 1, worker: undefined, serving: false, startedAt: 0, failures: 0, restart: undefined, ending: false }
  })
  let wasReady = false
  let stopping = false
  let status = 0
  let resolveDone: (status: number) => void
  const done = new Promise<number>((resolve) => {
    resolveDone = resolve
  })

  function start(slot: Slot): void {
    const worker = options.start(slot.number)
    Object.assign(slot, { worker, serving: false, ending: false, startedAt: now() })
    void worker.ended.then((ending) => ended(slot, ending))
  }

  function ended(slot: Slot, ending: Ending): void {
    slot.worker = undefined
    slot.serving = false
    if (stopping) return endIfEmpty()
    if (wasReady && options.endsWithLast && !slots.some(({ serving, ending }) => serving && !ending)) {
      return giveUp('no process is left that has the socket of the service manager, which has to start all anew', 1)
    }
    if (slot.ending) {
      log.info(`process ${slot.number} has stopped: another takes its place`)
      return start(slot)
    }
    const how = describe(ending)
    // A status of 0 would say that the server was asked to stop.
    if (!wasReady) return giveUp(`process ${slot.number} ended before all served: ${how}${adviceOn(ending)}`, ending.status || 1)
    slot.failures = now() - slot.startedAt < soonMs ? slot.failures + 1 : 1
    const what = `process ${slot.number} ended: ${how}`
    if (slot.failures >= mostFailures && !slots.some(isHealthy)) {
      return giveUp(`${what}; it did so ${slot.failures} times in a row within ${soonMs / 1000} s of its start`, 1)
    }
    const waitMs = slot.failures === 1 ? 0 : Math.min(firstDelayMs * 2 ** (slot.failures - 2), longestDelayMs)
    log.error(`${what}; another takes its place${waitMs === 0 ? '' : ` in ${waitMs} ms`}`)
    if (waitMs === 0) return start(slot)
    slot.restart = setTimeout(() => start(slot), waitMs)
  }

  function isHealthy(slot: Slot): boolean {
    return slot.serving && now() - slot.startedAt >= soonMs
  }

  function giveUp(message: string, withStatus: number): void {
    log.fatal(`${message}: the server is stopped`)
    status = withStatus
    options.onGivenUp()
    void stop(false)
  }

  function endIfEmpty(): void {
    if (slots.every(({ worker }) => worker === undefined)) resolveDone(status)
  }

  /** @param isAskedFor false: there is little left to serve, so no load balancer is given the time to take note */
  function stop(isAskedFor = true): Promise<number> {
    if (stopping) return done
    stopping = true
    for (const slot of slots) {
      clearTimeout(slot.restart)
      if (slot.worker !== undefined) endGracefully(slot, slot.worker, isAskedFor)
    }
    endIfEmpty()
    return done
  }

  /** @param drains whether it serves on for `server.drain_delay_s`; where others serve nobody has to take note */
  function endGracefully(slot: Slot, worker: WorkerProcess, drains: boolean): void {
    slot.ending = true
    worker.peer.tell('process.stop', drains)
    const timer = setTimeout(() => {
      log.warn(`process ${slot.number} did not stop in time: it is killed`)
      worker.kill('SIGKILL')
    }, stopTimeoutMs + graceMs)
    void worker.ended.then(() => clearTimeout(timer))
  }

  for (const slot of slots) start(slot)

  return {
    places: slots,
    serves: (number) => {
      const slot = slots[number - 1]
      if (slot !== undefined) slot.serving = true
      if (wasReady || !slots.every(({ serving }) => serving)) return
      wasReady = true
      options.onReady()
    },
    ends: (number) => {
      const slot = slots[number - 1]
      if (slot !== undefined) slot.ending = true
    },
    replace: (number) => {
      const slot = slots[number - 1]
      if (slot?.worker !== undefined && !slot.ending) endGracefully(slot, slot.worker, false)
    },
    stop: () => stop(),
    kill: () => {
      stopping = true
      for (const { worker } of slots) worker?.kill('SIGKILL')
    },
    done,
  }
}

/** Node aborts where it may start no more threads. It has some 11 in each process. */
function adviceOn({ signal }: Ending): string {
  return signal === 'SIGABRT' ? ' (too few threads allowed? see TasksMax= of the unit and ulimit -u; or too little memory)' : ''
}

function describe({ status, signal, error }: Ending): string {
  if (error !== undefined) return `it could not be started: ${error.message}`
  return signal === null ? `with status ${status}` : `by ${signal}`
}
