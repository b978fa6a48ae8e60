/**
 * The readings of all processes as a worker gets them: it asks the primary, which asks every worker and answers with
 * the total (`readings-host.ts`).
 */
import { keptLines, type LogLine } from '../log/recent-lines.ts'
import type { HistorySnapshot } from '../metrics/history.ts'
import type { OwnProcess, Processes, Since } from '../metrics/processes.ts'
import type { Reading, ServerReading } from '../metrics/reading.ts'
import { keptRequests, type RecentRequest } from '../metrics/recent-requests.ts'
import type { Peer } from './peer.ts'

/** The calls to a worker. */
export const askWorker = {
  /** Answers a `Reading` since the start, with the routes that changed since the last answer. */
  changes: 'readings.own-changes',
  /** Answers `Summary`. */
  summary: 'readings.own-summary',
  /** Answers a list of `LogLine`. */
  lines: 'readings.own-lines',
  /** Answers a list of `RecentRequest`. */
  requests: 'readings.own-requests',
} as const

/** The calls and messages to the primary. */
export const askPrimary = {
  /** Takes `Since` and answers `ServerReading`. */
  server: 'readings.server',
  /** Answers a list of lists of `LogLine`. */
  lines: 'readings.all-lines',
  /** Answers a list of lists of `RecentRequest`. */
  requests: 'readings.all-requests',
  /** Answers a `HistorySnapshot`. */
  history: 'readings.history',
  /** Takes a `Reading` as above: this worker has begun a bench window. */
  windowBegan: 'readings.window-began',
  /** Takes a `LastReading`: the worker ends. */
  last: 'readings.last',
} as const

/** The last message of a worker. */
export interface LastReading {
  readonly changes: Reading
  readonly lines: readonly LogLine[]
  readonly requests: readonly RecentRequest[]
}

/**
 * Connects a worker with the other processes of the server. Its functions reject with `DisconnectedError` when the
 * primary has ended. `close()` sends the last reading, so close the channel after it.
 */
export function createClusterProcesses(peer: Peer, own: OwnProcess): Processes {
  peer.on(askWorker.changes, () => own.takeChanges())
  peer.on(askWorker.summary, () => own.summary())
  peer.on(askWorker.lines, () => own.lines())
  peer.on(askWorker.requests, () => own.requests())
  // The primary runs the same program, so it answers as `askPrimary` says.
  return {
    read: async (since: Since) => (await peer.call(askPrimary.server, since)) as ServerReading,
    lines: async () => inOrder((await peer.call(askPrimary.lines)) as readonly (readonly LogLine[])[], keptLines),
    requests: async () =>
      inOrder((await peer.call(askPrimary.requests)) as readonly (readonly RecentRequest[])[], keptRequests),
    history: async () => (await peer.call(askPrimary.history)) as HistorySnapshot,
    beginWindow: () => {
      own.beginWindow()
      peer.tell(askPrimary.windowBegan, own.takeChanges())
    },
    close: () => {
      const last: LastReading = { changes: own.takeChanges(), lines: own.lines(), requests: own.requests() }
      peer.tell(askPrimary.last, last)
    },
  }
}

/** Merges lists by time, oldest first, and keeps the last `most`. At one time, the order of the lists stays. */
export function inOrder<Entry extends { readonly time: number }>(
  lists: readonly (readonly Entry[])[],
  most: number,
): Entry[] {
  return lists
    .flat()
    .sort((a, b) => a.time - b.time)
    .slice(-most)
}
