/**
 * The readings of a server with several processes, in the primary: asks the workers for theirs, adds them up, and keeps
 * the history of the totals. A worker that does not answer in time, or has ended, counts with its last reading, so that
 * no counter decreases.
 */
import { endsWithin } from '../base/deadline.ts'
import { sumOfGroups, type ErrorGroup } from '../log/error-groups.ts'
import { keptLines } from '../log/recent-lines.ts'
import { createHistory, createSampler } from '../metrics/history.ts'
import { countRequests, keptRequests } from '../metrics/metrics.ts'
import type { OwnProcess, Since, Summary } from '../metrics/processes.ts'
import { sumOf, withoutEventLoop, type ProcessReading, type Reading, type ServerReading } from '../metrics/reading.ts'
import { EndedProcesses, inOrder, KnownProcess, type WorkerIdentity } from './known-process.ts'
import { DisconnectedError, type Peer } from './peer.ts'
import type { ServedByPrimary, ServedByWorker } from './readings.ts'
import { remote, serve, type Remote } from './remote.ts'

interface ReadingsHostOptions {
  /** The primary itself. */
  readonly own: OwnProcess
  /** Called with the error of a worker's answer. */
  readonly report: (message: string, error: unknown) => void
}

/** The readings of all processes, as the primary has them. */
export interface ReadingsHost {
  /**
   * Adds a worker until its channel closes. Call it before the first message of the worker arrives.
   * @returns a function to call when the worker can answer; until then the worker is shown as starting
   */
  attach(peer: Peer, identity: WorkerIdentity): () => void
  /** The errors of all processes by cause. */
  errors(): Promise<readonly ErrorGroup[]>
  /** Forgets the errors of the primary, and of workers that have ended. */
  clearErrors(beforeMs?: number): void
  /** Begins a bench window. Resolves when the workers have been asked for what they counted before. */
  beginWindow(): Promise<void>
  /**
   * Adds up the summaries of all processes.
   * @param serving the channels of the workers that can answer, which excludes those that are still loading
   */
  summary(serving: ReadonlySet<Peer>): Promise<Summary>
  close(): void
}

/** How long a worker may take to answer, in milliseconds. */
const answerWithinMs = 1000

/** Makes the host and begins to take samples for the history. */
export function createReadingsHost({ own, report }: ReadingsHostOptions): ReadingsHost {
  const workers = new Set<KnownProcess>()
  const ended = new EndedProcesses()
  const summaries = new WeakMap<KnownProcess, Summary>()
  /** The workers that have not answered in time, until they do. */
  const late = new Set<KnownProcess>()
  const begun = (): KnownProcess[] => [...workers].filter(({ starting }) => !starting)

  /**
   * Asks workers at once, but for those that hang: nothing piles up in front of them. Resolves with the answers that
   * came in time; `take` gets later ones too.
   */
  async function ask<Answered, Answer>(
    asked: readonly KnownProcess[],
    question: (worker: Remote<ServedByWorker>) => Promise<Answered>,
    take: (worker: KnownProcess, answered: Answered) => Answer,
  ): Promise<ReadonlyMap<KnownProcess, Answer>> {
    const answers = new Map<KnownProcess, Answer>()
    const pending = new Set(asked.filter((worker) => !late.has(worker)))
    const calls = [...pending].map(async (worker) => {
      const { peer, identity: { id, pid } } = worker
      try {
        answers.set(worker, take(worker, await question(remote(peer, 'readings'))))
      } catch (error) {
        if (!(error instanceof DisconnectedError)) {
          report(`Cannot read the metrics of worker ${id} (process ${pid})`, error)
        }
      }
      pending.delete(worker)
      late.delete(worker)
    })
    await endsWithin(answerWithinMs, Promise.all(calls))
    for (const worker of pending) late.add(worker)
    return new Map(answers)
  }

  const askChanges = () => ask(begun(), ({ changes }) => changes(), (worker, answered) => worker.take(answered))

  async function read(since: Since): Promise<ServerReading> {
    const answered = await askChanges()
    const ofPrimary = own.read(since)
    const ofWorkers = [...workers].sort(byId).map((worker): ProcessReading => {
      const { identity, starting } = worker
      return { ...identity, responding: answered.has(worker), starting, reading: worker.read(since) }
    })
    const ofEnded = ended.read(since)
    const processes = [{ id: 'primary', pid: process.pid, responding: true, reading: ofPrimary }, ...ofWorkers]
    return {
      pid: process.pid,
      total: total(ofPrimary, [...ofWorkers.map(({ reading }) => reading), ofEnded]),
      parts: {
        processes: processes.map((each) => ({ ...each, reading: withoutRoutes(each.reading) })),
        ended: { count: ended.count, reading: withoutRoutes(ofEnded) },
      },
    }
  }

  async function errors(): Promise<readonly ErrorGroup[]> {
    const lists = await ask(begun(), ({ errors: ofWorker }) => ofWorker(), (_, groups) => groups)
    return sumOfGroups([own.errors(), ended.last.errors, ...lists.values()])
  }

  const sample = createSampler(async () => {
    await askChanges()
    return total(own.readWithoutRoutes(), [...workers, ended].map((each) => withoutRoutes(each.read('start'))))
  })
  const history = createHistory({ sample })

  return {
    attach(peer, identity) {
      const worker = new KnownProcess(peer, identity)
      workers.add(worker)
      serve<ServedByPrimary>(peer, 'readings', {
        read,
        lines: async () => {
          const lists = await ask(begun(), ({ lines }) => lines(), (_, lines) => lines)
          return inOrder([own.lines(), ended.last.lines, ...lists.values()], keptLines)
        },
        requests: async () => {
          const lists = await ask(begun(), ({ requests }) => requests(), (_, requests) => requests)
          return inOrder([ended.last.requests, ...lists.values()], keptRequests)
        },
        errors,
        history: () => history.snapshot(),
        // An answer that came earlier is taken in a microtask, so this is, too.
        last: (reading) => queueMicrotask(() => worker.takeLast(reading)),
      })
      void peer.closed.then(() => {
        workers.delete(worker)
        ended.add(worker)
      })
      return () => {
        worker.starting = false
      }
    },
    errors,
    clearErrors(beforeMs) {
      own.clearErrors(beforeMs)
      ended.clearErrors(beforeMs)
    },
    async beginWindow() {
      await askChanges()
      own.beginWindow()
      ended.beginWindow()
      for (const worker of workers) worker.beginWindow()
    },
    async summary(serving) {
      const asked = [...workers].filter(({ peer }) => serving.has(peer))
      await ask(asked, ({ summary }) => summary(), (worker, answered) => void summaries.set(worker, answered))
      return sumOfSummaries([...workers].flatMap((worker) => summaries.get(worker) ?? []))
    },
    close: () => history.close(),
  }

  /** The primary adds its memory but not its event loop. It started first, so its uptime is the server's. */
  function sumOfSummaries(known: readonly Summary[]): Summary {
    const primary = own.summary()
    const ofEnded = ended.read('start')
    const gone = ofEnded === undefined ? { total: 0, errors: 0 } : countRequests(ofEnded.values.requests)
    const sum = (name: 'requests' | 'errors' | 'active' | 'rss_mb'): number =>
      known.reduce((all, each) => all + each[name], 0)
    return {
      processes: known.length,
      uptime_s: primary.uptime_s,
      requests: sum('requests') + gone.total,
      errors: sum('errors') + gone.errors,
      active: sum('active'),
      rss_mb: Math.round((sum('rss_mb') + primary.rss_mb) * 10) / 10,
      loop_p99_ms: Math.max(0, ...known.map(({ loop_p99_ms: p99 }) => p99)),
    }
  }
}

/** The primary serves no request, so the idle time of its event loop is left out. */
function total(ofPrimary: Reading, others: readonly (Reading | undefined)[]): Reading {
  return sumOf([withoutEventLoop(ofPrimary), ...others.filter((reading) => reading !== undefined)])
}

function withoutRoutes(reading: Reading | undefined): Reading | undefined {
  return reading && { ...reading, routes: [] }
}

function byId({ identity: a }: KnownProcess, { identity: b }: KnownProcess): number {
  return a.id.localeCompare(b.id, 'en', { numeric: true })
}
