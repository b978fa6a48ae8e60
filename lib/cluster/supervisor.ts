/**
 * Keeps a number of workers running. A worker that ends is replaced at once, or after a growing delay when workers keep
 * ending soon after their start.
 *
 * Surprise: until all workers have served for the first time none is replaced. A fault that ends one of them, such as a
 * route file that is not JSON, stops the server with that worker's exit status, as it does with a single process.
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
  /** Called when the supervisor stops the server by itself. */
  readonly onGivenUp: () => void
  /** A monotonic clock in milliseconds; `performance.now` unless given. */
  readonly now?: () => number
}

/** The place of a worker, which outlives it. */
interface Place {
  readonly number: number
  /** Undefined until the next worker is started. */
  worker: WorkerProcess | undefined
  /** Whether it answers requests. */
  serving: boolean
  startedAt: number
  /** How many workers in a row ended soon after their start. */
  failures: number
  /** Why the last one has ended, until the next one serves; undefined when it did not fail. */
  failure: string | undefined
  /** Why the present one will end, where that is known. */
  reason: string | undefined
  restart: NodeJS.Timeout | undefined
  /** Whether the worker has been asked to end. */
  ending: boolean
}

/** A worker that ends within this time has failed to start, whatever it did meanwhile. */
const soonMs = 10_000
const firstDelayMs = 100
const longestDelayMs = 30_000
/** After this many failures of a worker in a row the server stops, unless another worker serves that has fewer. */
const mostFailures = 5
/** Added to the time of a worker's own stop before it is killed. */
const graceMs = 2000

/** Starts the workers. */
export function createSupervisor(options: SupervisorOptions) {
  const { count, log, stopTimeoutMs, now = () => performance.now() } = options
  const places = Array.from({ length: count }, (_, at) => emptyPlace(at + 1))
  let wasReady = false
  let stopping = false
  let status = 0
  let resolveDone: (status: number) => void
  const done = new Promise<number>((resolve) => {
    resolveDone = resolve
  })

  function start(place: Place): void {
    const worker = options.start(place.number)
    Object.assign(place, { worker, serving: false, ending: false, reason: undefined, startedAt: now() })
    void worker.ended.then((ending) => ended(place, ending))
  }

  function ended(place: Place, ending: Ending): void {
    place.worker = undefined
    place.serving = false
    if (stopping) return endIfEmpty()
    if (wasReady && options.endsWithLast && !places.some(({ serving, ending }) => serving && !ending)) {
      return giveUp('no process is left that has the socket of the service manager, which has to restart the server', 1)
    }
    if (place.ending) {
      log.info(`process ${place.number} has stopped: another takes its place`)
      return start(place)
    }
    const how = describe(ending)
    if (!wasReady) {
      // A status of 0 would say that the server was asked to stop.
      return giveUp(`process ${place.number} ended before all served: ${how}${adviceOn(ending)}`, ending.status || 1)
    }
    place.failures = now() - place.startedAt < soonMs ? place.failures + 1 : 1
    place.failure = place.reason ?? (ending.error === undefined ? `it ended ${how}` : how)
    const what = `process ${place.number} ended: ${place.reason ?? how}`
    if (place.failures >= mostFailures && !places.some(isHealthy)) {
      return giveUp(`${what}; it did so ${place.failures} times in a row within ${soonMs / 1000} s of its start`, 1)
    }
    const waitMs = place.failures === 1 ? 0 : Math.min(firstDelayMs * 2 ** (place.failures - 2), longestDelayMs)
    log.error(`${what}; another takes its place${waitMs === 0 ? '' : ` in ${waitMs} ms`}`)
    if (waitMs === 0) return start(place)
    place.restart = setTimeout(() => start(place), waitMs)
  }

  /** Not only after `soonMs`: a worker that has just started keeps the server alive while others cannot start. */
  function isHealthy(place: Place): boolean {
    return place.serving && (place.failures < mostFailures || now() - place.startedAt >= soonMs)
  }

  function giveUp(message: string, withStatus: number): void {
    log.fatal(`${message}: the server is stopped`)
    status = withStatus
    options.onGivenUp()
    void stop(false)
  }

  function endIfEmpty(): void {
    if (places.every(({ worker }) => worker === undefined)) resolveDone(status)
  }

  /** @param drains whether workers serve on for `server.drain_delay_s`, so that a load balancer notices */
  function stop(drains = true): Promise<number> {
    if (stopping) return done
    stopping = true
    for (const place of places) {
      clearTimeout(place.restart)
      if (place.worker !== undefined) endGracefully(place, place.worker, drains)
    }
    endIfEmpty()
    return done
  }

  function endGracefully(place: Place, worker: WorkerProcess, drains: boolean): void {
    place.ending = true
    worker.peer.tell('process.stop', drains)
    const timer = setTimeout(() => {
      log.warn(`process ${place.number} did not stop in time: it is killed`)
      worker.kill('SIGKILL')
    }, stopTimeoutMs + graceMs)
    void worker.ended.then(() => clearTimeout(timer))
  }

  for (const place of places) start(place)

  return {
    places,
    /** Call it when the worker with this number begins to serve. */
    serves: (number: number): void => {
      const place = places[number - 1]
      if (place !== undefined) Object.assign(place, { serving: true, failure: undefined })
      if (wasReady || !places.every(({ serving }) => serving)) return
      wasReady = true
      options.onReady()
    },
    /** Call it when the worker with this number cannot serve and will end. The first reason counts. */
    fails: (number: number, why: string): void => {
      const place = places[number - 1]
      if (place !== undefined) place.reason ??= why
    },
    /** Call it when the worker with this number has begun to stop. */
    ends: (number: number): void => {
      const place = places[number - 1]
      if (place !== undefined) place.ending = true
    },
    /** Stops a worker gracefully and starts another in its place. */
    replace: (number: number): void => {
      const place = places[number - 1]
      if (place?.worker !== undefined && !place.ending) endGracefully(place, place.worker, false)
    },
    /** Stops all workers gracefully. Resolves with the exit status when the last has ended; a second call, too. */
    stop: (): Promise<number> => stop(),
    /** Kills all workers. */
    kill: (): void => {
      stopping = true
      for (const { worker } of places) worker?.kill('SIGKILL')
    },
    /** A line for each worker that has failed, until its successor serves. */
    warnings: (): string[] =>
      places.flatMap(({ number, failure, failures }) => {
        if (failure === undefined) return []
        const times = failures === 1 ? '' : `, ${failures} times in a row soon after its start`
        return doesNotServe(number, `${failure}${times}`)
      }),
    /** Resolves with the exit status when all workers have ended. */
    done,
  }
}

/** The warning about a worker that does not serve, with the reason. */
export const doesNotServe = (number: number, why: string): string =>
  `process ${number} does not serve: ${why}. It is tried again`

function emptyPlace(number: number): Place {
  const ofWorker = { worker: undefined, serving: false, ending: false, reason: undefined, startedAt: 0 }
  return { number, ...ofWorker, failures: 0, failure: undefined, restart: undefined }
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
