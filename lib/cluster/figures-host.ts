/**
 * The figures of a server of several processes, in its primary: asks the workers for theirs, keeps the history of all of
 * them together, and remembers what those counted that have ended.
 *
 * Surprise: a worker that does not answer in time, or has ended, counts with what it told last. Without that the sums
 * would fall, which counters must not.
 */
import type { LogLine } from '../log/recent-lines.ts'
import type { Figures, ProcessFigures } from '../metrics/figures.ts'
import { createHistory, type Sample } from '../metrics/history.ts'
import { mergeIntervals, sumOf } from '../metrics/merge.ts'
import type { OwnProcess } from '../metrics/processes.ts'
import type { RecentRequest } from '../metrics/recent-requests.ts'
import { sampleOf } from '../metrics/sample.ts'
import { sumSummaries, type EndedRequests, type Summary } from '../metrics/summary.ts'
import { totalOf } from '../metrics/totals.ts'
import { createAsk, type Ask } from './ask.ts'
import { EndedProcesses } from './ended-processes.ts'
import { askPrimary, askWorker, type Changes, type LastFigures } from './figures.ts'
import { KnownProcess, type WorkerIdentity } from './known-process.ts'
import type { Peer } from './peer.ts'

export interface FiguresHostOptions {
  /** What the primary knows of itself. */
  readonly own: OwnProcess
  /** Told of a worker whose answer was an error. */
  readonly report: (message: string, error: unknown) => void
  /** How long a worker may take to answer, in milliseconds; 1000 unless given. */
  readonly answerWithinMs?: number
  /** Milliseconds from one sample of the history to the next; 5000 unless given. */
  readonly sampleEveryMs?: number
}

export interface FiguresHost {
  /**
   * Counts a worker in until its channel closes. To be called before anything comes from it.
   * @returns to be called when it can be asked: until then it is shown as one that is starting
   */
  attach(peer: Peer, identity: WorkerIdentity): () => void
  /**
   * Begins a new bench window for the primary and for the ended. To be called before the workers are told to.
   * @param begun the worker that has begun its own already
   */
  resetWindow(begun?: Peer): void
  /**
   * The sum of all processes in a few numbers.
   * @param serving the channels of the workers that can be asked: one that is still loading does not answer
   */
  summary(serving: ReadonlySet<Peer>): Promise<Summary>
  close(): void
}

/** Makes the host, and begins to take samples for the history. */
export function createFiguresHost(options: FiguresHostOptions): FiguresHost {
  const { own, report, answerWithinMs = 1000, sampleEveryMs = 5000 } = options
  const workers = new Set<KnownProcess>()
  const ended = new EndedProcesses()
  const summaries = new WeakMap<KnownProcess, Summary>()
  let endedRequests: EndedRequests = { requests: 0, errors: 0 }
  const history = createHistory({ sample, everyMs: sampleEveryMs })
  const begun = (): KnownProcess[] => [...workers].filter(({ starting }) => !starting)

  function question<Answer>(name: string, take: (worker: KnownProcess, answered: unknown) => Answer): Ask<KnownProcess, Answer> {
    const reportOf = (worker: KnownProcess, error: unknown): void => report(`Cannot read the figures of ${worker.name}`, error)
    return createAsk({ name, take, report: reportOf, withinMs: answerWithinMs })
  }

  // What the workers answer is what `askWorker` says: they are of the same program.
  const askFigures = question(askWorker.figures, (worker, answered) => worker.take(answered as Figures))
  const askChanges = question(askWorker.changes, (worker, answered) => worker.takeChanges(answered as Changes))
  const askLines = question(askWorker.lines, (_, answered) => answered as readonly LogLine[])
  const askRequests = question(askWorker.requests, (_, answered) => answered as readonly RecentRequest[])

  const askSummary = question(askWorker.summary, (_, answered) => answered as Summary)

  async function figures(): Promise<readonly ProcessFigures[]> {
    const answered = await askFigures(begun())
    const primary: ProcessFigures = { ...own.figures(), id: 'primary', role: 'primary', pid: process.pid, responding: true }
    const byId = [...workers].sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }))
    return [primary, ...byId.map((worker) => worker.figuresOf(answered.has(worker))), ...ended.figures()]
  }

  async function sample(): Promise<Sample> {
    await askChanges(begun())
    const intervals = [...workers, ended].flatMap((each) => each.giveIntervals())
    const { seconds } = own.takeInterval().requests
    const gauges = sumOf([own.gauges(), ...Array.from(workers, ({ gauges }) => gauges)])
    return sampleOf(mergeIntervals(intervals, seconds), gauges)
  }

  return {
    attach(peer, identity) {
      const worker = new KnownProcess(peer, identity)
      workers.add(worker)
      peer.on(askPrimary.figures, figures)
      peer.on(askPrimary.lines, async () => {
        const answers = await askLines(begun())
        return [own.lines(), ended.lines, ...answers.values()]
      })
      peer.on(askPrimary.requests, async () => {
        const answers = await askRequests(begun())
        return [ended.requests, ...answers.values()]
      })
      peer.on(askPrimary.history, () => history.snapshot())
      peer.on(askPrimary.windowBegan, () => worker.beginWindow())
      peer.on(askPrimary.last, (told) => worker.takeLast(told as LastFigures)) // `createClusterProcesses` tells it.
      void peer.closed.then(() => {
        workers.delete(worker)
        ended.add(worker)
        const { requests, errors } = totalOf(worker.figures.requests.routes)
        endedRequests = { requests: endedRequests.requests + requests, errors: endedRequests.errors + errors }
      })
      return () => {
        worker.starting = false
      }
    },
    resetWindow(begun) {
      own.resetWindow()
      ended.endWindow()
      for (const worker of workers) {
        worker.endWindow()
        if (worker.peer === begun) worker.beginWindow()
      }
    },
    summary: async (serving) => {
      const asked = [...workers].filter(({ peer }) => serving.has(peer))
      for (const [worker, summary] of await askSummary(asked)) summaries.set(worker, summary)
      const known = [...workers].flatMap((worker) => summaries.get(worker) ?? [])
      return sumSummaries(own.summary(), known, endedRequests)
    },
    close: () => history.close(),
  }
}
