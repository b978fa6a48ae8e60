/**
 * Keeps a number of workers running. A worker that ends is replaced at once, or after a growing delay when workers keep
 * ending soon after their start.
 *
 * Surprise: until all workers have served for the first time, none is replaced. A fault that ends one, such as a route
 * file that is not JSON, stops the server with that worker's exit status, as with a single process.
 */
import { performance } from 'node:perf_hooks'
import type { ModuleLogger } from '../log/logger.ts'
import type { Ending, WorkerProcess } from './worker-process.ts'

interface SupervisorOptions {
  /** The number of workers, from 1. */
  readonly count: number
  /** Starts the worker with this number, from 1. */
  readonly start: (number: number) => WorkerProcess
  readonly log: ModuleLogger
  /** Whether to stop when no worker serves any more: Node closes a passed socket with the last worker that has it. */
  readonly endsWithLast: boolean
  /** The longest time for a stop, in milliseconds. */
  readonly stopTimeoutMs: number
  /** Called when all workers serve for the first time. */
  readonly onReady: () => void
  /** Called when the supervisor itself decides to stop the server. */
  readonly onGivenUp: () => void
  /** Returns the last state of a worker that has ended; undefined if unknown. */
  readonly lastStateOf?: (worker: WorkerProcess) => string | undefined
  /** A monotonic clock in milliseconds; by default `performance.now`. */
  readonly now?: () => number
}

/** The slot of a worker, which its successor inherits. */
interface Slot {
  readonly number: number
  /** Undefined until the next worker is started. */
  worker: WorkerProcess | undefined
  /** Whether it answers requests. */
  serving: boolean
  startedAt: number
  /** How many workers in a row ended soon after their start. */
  failures: number
  /** Why the last worker ended, until the next one serves; undefined when it did not fail. */
  failure: string | undefined
  /** Why the current worker will end, if known. */
  reason: string | undefined
  /** Whether it is being killed because it hangs. */
  hangs: boolean
  restart: NodeJS.Timeout | undefined
  /** Whether the worker has been asked to end. */
  ending: boolean
}

/** Why a worker was replaced. */
type Replacement = keyof ReturnType<typeof noReplacements>

/** A worker that ends within this time counts as failed to start, even if it has served. */
const soonMs = 10_000
const firstDelayMs = 100
const longestDelayMs = 30_000
/** After this many consecutive failures of a worker the server stops, unless another worker with fewer serves. */
const mostFailures = 5
/** Added to `stopTimeoutMs` before a worker is killed, so that its time-out applies first. */
const graceMs = 2000

/** Starts the workers. */
export function createSupervisor(options: SupervisorOptions) {
  const { count, log, stopTimeoutMs, now = () => performance.now() } = options
  const slots = Array.from({ length: count }, (_, at) => emptySlot(at + 1))
  const replaced = noReplacements()
  let wasReady = false
  let stopping = false
  let status = 0
  let resolveDone: (status: number) => void
  const done = new Promise<number>((resolve) => {
    resolveDone = resolve
  })

  function start(slot: Slot): void {
    const worker = options.start(slot.number)
    Object.assign(slot, { worker, serving: false, ending: false, hangs: false, reason: undefined, startedAt: now() })
    void worker.ended.then((ending) => ended(slot, worker, ending))
  }

  function ended(slot: Slot, worker: WorkerProcess, ending: Ending): void {
    slot.worker = undefined
    slot.serving = false
    if (stopping) return endIfEmpty()
    if (wasReady && options.endsWithLast && !slots.some(({ serving, ending }) => serving && !ending)) {
      return giveUp('no process is left that has the socket of the service manager, which has to restart the server', 1)
    }
    if (slot.ending) {
      log.info(`process ${slot.number} has stopped: restarting`)
      replaced.planned += 1
      return start(slot)
    }
    const how = describe(ending)
    if (!wasReady) {
      // A status of 0 would mean that a stop was requested.
      return giveUp(`process ${slot.number} ended before all served: ${how}${adviceOn(ending)}`, ending.status || 1)
    }
    slot.failures = now() - slot.startedAt < soonMs ? slot.failures + 1 : 1
    slot.failure = slot.reason ?? (ending.error === undefined ? `it ended ${how}` : how)
    const state = options.lastStateOf?.(worker)
    const lastSeen = state === undefined ? '' : `; last seen: ${state}`
    const what = `process ${slot.number} ended: ${slot.reason ?? how}${lastSeen}`
    if (slot.failures >= mostFailures && !slots.some(isHealthy)) {
      return giveUp(`${what}; it did so ${slot.failures} times in a row within ${soonMs / 1000} s of its start`, 1)
    }
    replaced[replacementOf(slot, ending)] += 1
    const waitMs = slot.failures === 1 ? 0 : Math.min(firstDelayMs * 2 ** (slot.failures - 2), longestDelayMs)
    log.error(`${what}; restarting${waitMs === 0 ? '' : ` in ${waitMs} ms`}`)
    if (waitMs === 0) return start(slot)
    slot.restart = setTimeout(() => start(slot), waitMs)
  }

  /** Whether a worker serves and does not keep failing. One that has just started counts, so the server stays up. */
  function isHealthy(slot: Slot): boolean {
    return slot.serving && (slot.failures < mostFailures || now() - slot.startedAt >= soonMs)
  }

  function giveUp(message: string, withStatus: number): void {
    log.fatal(`${message}: stopping the server`)
    status = withStatus
    options.onGivenUp()
    void stop(false)
  }

  function endIfEmpty(): void {
    if (slots.every(({ worker }) => worker === undefined)) resolveDone(status)
  }

  /** @param drains whether workers keep serving for `server.drain_delay_s`, so that a load balancer notices */
  function stop(drains = true): Promise<number> {
    if (stopping) return done
    stopping = true
    for (const slot of slots) {
      clearTimeout(slot.restart)
      if (slot.worker !== undefined) endGracefully(slot, slot.worker, drains)
    }
    endIfEmpty()
    return done
  }

  function endGracefully(slot: Slot, worker: WorkerProcess, drains: boolean): void {
    slot.ending = true
    worker.peer.notify('process.stop', drains)
    const timer = setTimeout(() => {
      log.warn(`process ${slot.number} did not stop in time: killing it`)
      worker.kill('SIGKILL')
    }, stopTimeoutMs + graceMs)
    void worker.ended.then(() => clearTimeout(timer))
  }

  for (const slot of slots) start(slot)

  return {
    slots,
    /** Call it when the worker with this number starts serving. */
    serves: (number: number): void => {
      const slot = slots[number - 1]
      if (slot !== undefined) Object.assign(slot, { serving: true, failure: undefined })
      if (wasReady || !slots.every(({ serving }) => serving)) return
      wasReady = true
      options.onReady()
    },
    /** Call it when the worker with this number cannot serve and will end. The first reason is kept. */
    fails: (number: number, why: string): void => {
      const slot = slots[number - 1]
      if (slot !== undefined) slot.reason ??= why
    },
    /** Call it when the worker with this number has begun to stop. */
    ends: (number: number): void => {
      const slot = slots[number - 1]
      if (slot !== undefined) slot.ending = true
    },
    /** Call it before the worker with this number is killed because it hangs. */
    hangs: (number: number): void => {
      const slot = slots[number - 1]
      if (slot !== undefined) slot.hangs = true
    },
    /** The replaced workers by reason. */
    replaced: replaced as Readonly<typeof replaced>,
    /** Stops a worker gracefully and starts a successor. */
    replace: (number: number): void => {
      const slot = slots[number - 1]
      if (slot?.worker !== undefined && !slot.ending) endGracefully(slot, slot.worker, false)
    },
    /** Stops all workers gracefully. Resolves with the exit status when the last has ended. Joins an earlier call. */
    stop: (): Promise<number> => stop(),
    /** Kills all workers. */
    kill: (): void => {
      stopping = true
      for (const { worker } of slots) worker?.kill('SIGKILL')
    },
    /** Returns a line for each worker that has failed, until its successor serves. */
    warnings: (): string[] =>
      slots.flatMap(({ number, failure, failures }) => {
        if (failure === undefined) return []
        const times = failures === 1 ? '' : `, ${failures} times in a row soon after its start`
        return doesNotServe(number, `${failure}${times}`)
      }),
    /** Resolves with the exit status when all workers have ended. */
    done,
  }
}

/** Returns the warning about a worker that does not serve. */
export const doesNotServe = (number: number, why: string): string =>
  `process ${number} does not serve: ${why}. Retrying`

function emptySlot(number: number): Slot {
  const ofWorker = { worker: undefined, serving: false, ending: false, hangs: false, reason: undefined, startedAt: 0 }
  return { number, ...ofWorker, failures: 0, failure: undefined, restart: undefined }
}

/**
 * Counts by reason: killed by this server because it hangs; ended by SIGABRT, as V8 does when its heap is full; by
 * another signal; with a status; not started, or could not serve; stopped as planned.
 */
const noReplacements = () => ({ hang: 0, abort: 0, signal: 0, exit: 0, start: 0, planned: 0 })

function replacementOf({ hangs, reason }: Slot, { signal, error }: Ending): Replacement {
  if (hangs) return 'hang'
  if (reason !== undefined || error !== undefined) return 'start'
  return signal === null ? 'exit' : signal === 'SIGABRT' ? 'abort' : 'signal'
}

/** Explains SIGABRT: Node aborts when it cannot start its threads, about 11 in each process. */
function adviceOn({ signal }: Ending): string {
  if (signal !== 'SIGABRT') return ''
  return ' (too few threads allowed? see TasksMax= of the unit and ulimit -u; or too little memory)'
}

function describe({ status, signal, error }: Ending): string {
  if (error !== undefined) return `it could not be started: ${error.message}`
  return signal === null ? `with status ${status}` : `by ${signal}`
}
