/**
 * What this process knows of itself, and a server that has no other.
 */
import type { LogLine } from '../log/recent-lines.ts'
import { noCounters } from './figures.ts'
import { createHistory } from './history.ts'
import type { OwnProcess, Processes } from './processes.ts'
import { sampleOf } from './sample.ts'
import { readCounters, readFigures, readGauges, type StatusSources } from './sources.ts'
import { summaryOf } from './summary.ts'

/**
 * Knows a process by the parts of its server.
 * @param lines gives the last lines of its log, the oldest first
 */
export function createOwnProcess(sources: StatusSources, lines: () => readonly LogLine[]): OwnProcess {
  const { metrics, eventLoop, queueWaits, restQueueWaits } = sources
  let countersAtStart = noCounters
  return {
    figures: (timings) => readFigures(sources, metrics.figures(timings), countersAtStart),
    takeChanges: () => readFigures(sources, metrics.takeChanges(), countersAtStart),
    takeInterval: () => {
      sources.sessions() // Looked at this often, little is missed of a store that is exchanged.
      return { requests: metrics.takeCounts(), eventLoop: eventLoop.takeCounts() }
    },
    gauges: () => readGauges(sources),
    summary: () =>
      summaryOf(metrics.answered(), { active: sources.activeRequests(), loopP99Ms: eventLoop.snapshot().p99_ms }),
    lines,
    requests: () => metrics.recent(),
    resetWindow: () => {
      metrics.resetWindow()
      eventLoop.reset()
      queueWaits.reset()
      restQueueWaits.reset()
      countersAtStart = readCounters(sources)
    },
  }
}

/** The processes of a server that has this one alone. */
export function createSingleProcess(own: OwnProcess): Processes {
  const history = createHistory({ sample: () => sampleOf(own.takeInterval(), own.gauges()) })
  return {
    figures: async (timings) => [{ ...own.figures(timings), id: '1', role: 'alone', pid: process.pid, responding: true }],
    lines: async () => own.lines(),
    requests: async () => own.requests(),
    history: async () => history.snapshot(),
    resetWindow: () => own.resetWindow(),
    close: () => history.close(),
  }
}
