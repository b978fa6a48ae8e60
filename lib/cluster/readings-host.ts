/**
 * The readings of a server with several processes, in the primary: queries the workers, adds up their readings, and
 * keeps the history of the totals. A worker that does not answer in time, or has ended, counts with its last reading,
 * so that no counter decreases.
 */
import { endsWithin } from '../base/deadline.ts'
import { sumOfGroups, type ErrorGroup } from '../log/error-groups.ts'
import { keptLines } from '../log/recent-lines.ts'
import { identityOf, TotalRows } from '../metrics/app-readings.ts'
import { createHistory, createSampler } from '../metrics/history.ts'
import { summaryOf, type ThisProcess, type Since, type Summary } from '../metrics/processes.ts'
import { boundRoutes, boundRows, sumOf, withMetrics, withoutEventLoop, withoutGauges } from '../metrics/reading.ts'
import type { ProcessReading, Reading, ServerReading } from '../metrics/reading.ts'
import { keptRequests } from '../metrics/metrics.ts'
import { KnownProcess, type ReadWorker } from './known-process.ts'
import { DisconnectedError } from './peer.ts'
import type { ServedByPrimary, ServedByWorker } from './readings.ts'
import { remote, serve, type Remote } from './remote.ts'

interface ReadingsHostOptions {
  /** The primary itself. */
  readonly thisProcess: ThisProcess
  /** The intended number of workers; they are numbered from 1. */
  readonly count: number
  /** Called with the error of a worker's answer. */
  readonly report: (message: string, error: unknown) => void
}

/** How long a worker may take to answer, in milliseconds. */
const answerWithinMs = 1000

/** Makes the host and starts sampling for the history. */
export function createReadingsHost({ thisProcess, count, report }: ReadingsHostOptions) {
  const workers = new Set<KnownProcess>()
  /** The sums of the workers that ended. Requests that a worker had not reported are lost. */
  const ended: Partial<Record<Since, Reading>> = {}
  let endedCount = 0
  const rows = new TotalRows()
  /** The workers that have not answered in time; removed when they do. */
  const late = new Set<KnownProcess>()

  /**
   * Queries all workers in parallel, except those that are loading or hang, so that no calls pile up. Resolves with the
   * answers that arrive in time.
   */
  async function ask<Answer>(
    question: (functions: Remote<ServedByWorker>, known: KnownProcess) => Promise<Answer>,
  ): Promise<ReadonlyMap<KnownProcess, Answer>> {
    const answers = new Map<KnownProcess, Answer>()
    const pending = new Set([...workers].filter((known) => known.worker.serving && !late.has(known)))
    const calls = [...pending].map(async (known) => {
      const { peer, number, pid } = known.worker
      try {
        answers.set(known, await question(remote(peer, 'readings'), known))
      } catch (error) {
        if (!(error instanceof DisconnectedError)) {
          report(`Cannot read the metrics of worker ${number} (process ${pid})`, error)
        }
      }
      pending.delete(known)
      late.delete(known)
    })
    await endsWithin(answerWithinMs, Promise.all(calls))
    for (const known of pending) late.add(known)
    return new Map(answers)
  }

  /** Logs what is wrong with the last reading: no caller waits for it. */
  function takeLast(known: KnownProcess, changes: Reading): void {
    const { number, pid } = known.worker
    try {
      known.take(changes)
    } catch (error) {
      report(`Cannot read the last metrics of worker ${number} (process ${pid})`, error)
    }
  }

  const askChanges = () => ask(async ({ takeChanges }, known) => known.take(await takeChanges()))

  /** Drops metrics of the application that no worker has anymore. While a worker is missing, it may still have them. */
  function dropRemovedMetrics(): void {
    const readings = [...workers].flatMap((known) => known.read('start') ?? [])
    if (readings.length < Math.max(count, workers.size)) return
    const living = new Set(readings.flatMap(({ appMetrics }) => appMetrics.map(identityOf)))
    rows.keep(living)
    if (ended.start) ended.start = withMetrics(ended.start, living)
    if (ended.window) ended.window = withMetrics(ended.window, living)
  }

  async function read(since: Since): Promise<ServerReading> {
    const answered = await askChanges()
    dropRemovedMetrics()
    const ofPrimary = thisProcess.read(since)
    const ofWorkers = [...workers].map((known): ProcessReading => {
      const { number, pid, serving } = known.worker
      const id = String(number)
      return { id, pid, responding: answered.has(known), starting: !serving, reading: known.read(since) }
    })
    for (let number = 1; number <= count; number += 1) {
      const id = String(number)
      if (ofWorkers.some((known) => known.id === id)) continue
      ofWorkers.push({ id, pid: 0, responding: false, reading: undefined })
    }
    ofWorkers.sort((a, b) => Number(a.id) - Number(b.id))
    const processes = [{ id: 'primary', pid: process.pid, responding: true, reading: ofPrimary }, ...ofWorkers]
    return {
      pid: process.pid,
      total: boundRows(total(ofPrimary, [...ofWorkers.map(({ reading }) => reading), ended[since]]), rows),
      parts: {
        processes: processes.map((each) => ({ ...each, reading: withoutRoutes(each.reading) })),
        ended: { count: endedCount, reading: withoutRoutes(ended[since]) },
      },
    }
  }

  /** Returns the errors of all processes by cause. */
  async function errors(): Promise<readonly ErrorGroup[]> {
    const lists = await ask((functions) => functions.errors())
    return sumOfGroups([thisProcess.errors(), ...lists.values()])
  }

  async function readTotals(): Promise<Reading> {
    await askChanges()
    dropRemovedMetrics()
    const others = [...[...workers].map((known) => known.read('start')), ended.start]
    return total(thisProcess.readWithoutRoutes(), others.map(withoutRoutes))
  }

  const history = createHistory({ sample: createSampler(readTotals) })

  return {
    /** Adds a worker until its channel closes. Call it before the first message of the worker arrives. */
    attach(worker: ReadWorker): void {
      const known = new KnownProcess(worker)
      const { peer } = worker
      workers.add(known)
      serve<ServedByPrimary>(peer, 'readings', {
        read,
        lines: async () => {
          const lists = await ask(({ lines }) => lines())
          return inOrder([thisProcess.lines(), ...lists.values()], keptLines)
        },
        requests: async () => {
          const lists = await ask(({ requests }) => requests())
          return inOrder([...lists.values()], keptRequests)
        },
        errors,
        history: async () => history.snapshot(),
        // An earlier answer is processed in a microtask, so this must be, too.
        last: (changes) => queueMicrotask(() => takeLast(known, changes)),
      })
      void peer.closed.then(() => {
        workers.delete(known)
        endedCount += 1
        for (const since of ['start', 'window'] as const) {
          const reading = known.read(since)
          if (reading === undefined) continue
          const last = withoutGauges(reading)
          ended[since] = boundRows(boundRoutes(ended[since] === undefined ? last : sumOf([ended[since], last])), rows)
        }
      })
    },
    errors,
    /** Begins a bench window. Resolves when the earlier counts of the workers have been read. */
    async beginWindow(): Promise<void> {
      await askChanges()
      thisProcess.beginWindow()
      delete ended.window
      for (const known of workers) known.beginWindow()
    },
    /** Adds up all processes. */
    async summary(): Promise<Summary> {
      const totals = await readTotals()
      return summaryOf(totals, [...workers].flatMap((known) => known.read('window') ?? []))
    },
    close: (): void => history.close(),
  }
}

/** Adds up readings. Omits the event loop of the primary, which serves no request. */
function total(ofPrimary: Reading, others: readonly (Reading | undefined)[]): Reading {
  return sumOf([withoutEventLoop(ofPrimary), ...others.filter((reading) => reading !== undefined)])
}

function withoutRoutes(reading: Reading | undefined): Reading | undefined {
  return reading && { ...reading, routes: [] }
}

/** Merges lists by time, oldest first, and keeps the last `most`. Entries of one time keep the order of the lists. */
function inOrder<Entry extends { readonly time: number }>(lists: readonly (readonly Entry[])[], most: number): Entry[] {
  return lists
    .flat()
    .sort((a, b) => a.time - b.time)
    .slice(-most)
}
