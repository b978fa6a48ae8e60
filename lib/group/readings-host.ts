/**
 * The readings of a server with several processes, in the primary: asks the workers for theirs, adds them up, and keeps
 * the history of the totals. A worker that does not answer in time, or has ended, counts with its last reading, so that
 * no counter decreases.
 */
import type { LogLine } from '../log/recent-lines.ts'
import { createHistory, createSampler } from '../metrics/history.ts'
import { countRequests } from '../metrics/metrics.ts'
import type { OwnProcess, Since, Summary } from '../metrics/processes.ts'
import { sumOf, withoutEventLoop, type ProcessReading, type Reading, type ServerReading } from '../metrics/reading.ts'
import type { RecentRequest } from '../metrics/recent-requests.ts'
import { createAsk, type Ask } from './ask.ts'
import { EndedProcesses, KnownProcess, type WorkerIdentity } from './known-process.ts'
import type { Peer } from './peer.ts'
import { askPrimary, askWorker, type LastReading } from './readings.ts'

interface ReadingsHostOptions {
  /** The primary itself. */
  readonly own: OwnProcess
  /** Called with the error of a worker's answer. */
  readonly report: (message: string, error: unknown) => void
}

/** How long a worker may take to answer, in milliseconds. */
const answerWithinMs = 1000

export interface ReadingsHost {
  /**
   * Adds a worker until its channel closes. Call it before the first message of the worker arrives.
   * @returns a function to call when the worker can answer; until then the worker is shown as starting
   */
  attach(peer: Peer, identity: WorkerIdentity): () => void
  /**
   * Begins a bench window. Call it before the workers begin theirs.
   * @param begun the channel of the worker that has begun the window already
   */
  beginWindow(begun?: Peer): void
  /**
   * Adds up the summaries of all processes.
   * @param serving the channels of the workers that can answer, which excludes those that are still loading
   */
  summary(serving: ReadonlySet<Peer>): Promise<Summary>
  close(): void
}

/** Makes the host and begins to take samples for the history. */
export function createReadingsHost(options: ReadingsHostOptions): ReadingsHost {
  const { own, report } = options
  const workers = new Set<KnownProcess>()
  const ended = new EndedProcesses()
  const summaries = new WeakMap<KnownProcess, Summary>()
  const begun = (): KnownProcess[] => [...workers].filter(({ starting }) => !starting)

  function question<Answer>(
    name: string,
    take: (worker: KnownProcess, answered: unknown) => Answer,
  ): Ask<KnownProcess, Answer> {
    const reportOf = ({ identity: { id, pid } }: KnownProcess, error: unknown): void =>
      report(`Cannot read the metrics of worker ${id} (process ${pid})`, error)
    return createAsk({ name, take, report: reportOf, withinMs: answerWithinMs })
  }

  // Workers run the same program, so they answer as `askWorker` says.
  const askChanges = question(askWorker.changes, (worker, answered) => worker.take(answered as Reading))
  const askSummary = question(askWorker.summary, (worker, answered) => void summaries.set(worker, answered as Summary))
  const askLines = question(askWorker.lines, (_, answered) => answered as readonly LogLine[])
  const askRequests = question(askWorker.requests, (_, answered) => answered as readonly RecentRequest[])

  async function read(since: Since): Promise<ServerReading> {
    const answered = await askChanges(begun())
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

  const sample = createSampler(async () => {
    await askChanges(begun())
    return total(own.readWithoutRoutes(), [...workers, ended].map((each) => withoutRoutes(each.read('start'))))
  })
  const history = createHistory({ sample })

  return {
    attach(peer, identity) {
      const worker = new KnownProcess(peer, identity)
      workers.add(worker)
      peer.on(askPrimary.server, (since) => read(since as Since))
      peer.on(askPrimary.lines, async () => [own.lines(), ended.last.lines, ...(await askLines(begun())).values()])
      peer.on(askPrimary.requests, async () => [ended.last.requests, ...(await askRequests(begun())).values()])
      peer.on(askPrimary.history, () => history.snapshot())
      // `createClusterProcesses` sends both. An answer that came earlier is taken in a microtask, so these are, too.
      peer.on(askPrimary.windowBegan, (changes) => queueMicrotask(() => worker.beginWindow(changes as Reading)))
      peer.on(askPrimary.last, (last) => queueMicrotask(() => worker.takeLast(last as LastReading)))
      void peer.closed.then(() => {
        workers.delete(worker)
        ended.add(worker)
      })
      return () => {
        worker.starting = false
      }
    },
    beginWindow(begunPeer) {
      own.beginWindow()
      ended.beginWindow()
      for (const worker of workers) if (worker.peer !== begunPeer) worker.awaitWindow()
    },
    async summary(serving) {
      await askSummary([...workers].filter(({ peer }) => serving.has(peer)))
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
