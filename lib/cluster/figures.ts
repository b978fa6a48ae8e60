/**
 * The processes of a server as one of its workers sees them. The primary asks all of them (`figures-host.ts`); what they
 * answered is put together here.
 */
import { keptLines } from '../log/recent-lines.ts'
import type { Figures, Interval, ProcessFigures } from '../metrics/figures.ts'
import type { HistorySnapshot } from '../metrics/history.ts'
import { keptRequests, type RecentRequest } from '../metrics/recent-requests.ts'
import type { OwnProcess, Processes } from '../metrics/processes.ts'
import type { LogLine } from '../log/recent-lines.ts'
import type { Peer } from './peer.ts'

/** What a worker is called for. */
export const askWorker = {
  /** Answers `Figures`. */
  figures: 'figures.own',
  /** Answers `Changes`. */
  changes: 'figures.changes',
  /** Answers `Summary`. */
  summary: 'figures.own-summary',
  /** Answers a list of `LogLine`. */
  lines: 'figures.own-lines',
  /** Answers a list of `RecentRequest`. */
  requests: 'figures.own-requests',
} as const

/** What the primary is called for, or told. */
export const askPrimary = {
  /** Answers a list of `ProcessFigures`. */
  figures: 'figures.all',
  /** Answers a list of lists of `LogLine`. */
  lines: 'figures.all-lines',
  /** Answers a list of lists of `RecentRequest`. */
  requests: 'figures.all-requests',
  /** Answers a `HistorySnapshot`. */
  history: 'figures.history',
  /** Tells that the bench window of this worker began anew: what it tells from here on is of the new one. */
  windowBegan: 'figures.window-began',
  /** Tells `LastFigures`: the worker ends. */
  last: 'figures.last',
} as const

/** What a worker tells for the history: the figures with the routes that changed, and what happened in between. */
export interface Changes {
  readonly interval: Interval
  readonly figures: Figures
}

/** What a worker knows when it ends. */
export interface LastFigures extends Changes {
  readonly lines: readonly LogLine[]
  readonly requests: readonly RecentRequest[]
}

/**
 * Joins a worker with the other processes of the server. What it asks rejects with `DisconnectedError` when the primary
 * is gone. `close()` tells the primary what was counted last, so the channel must be closed after it.
 */
export function createClusterProcesses(peer: Peer, own: OwnProcess): Processes {
  const takeChanges = (): Changes => ({ interval: own.takeInterval(), figures: own.takeChanges() })
  peer.on(askWorker.figures, () => own.figures())
  peer.on(askWorker.changes, takeChanges)
  peer.on(askWorker.summary, () => own.summary())
  peer.on(askWorker.lines, () => own.lines())
  peer.on(askWorker.requests, () => own.requests())
  // The primary is of the same program: what it answers is what `figures-host.ts` says.
  return {
    figures: async () => (await peer.call(askPrimary.figures)) as readonly ProcessFigures[],
    lines: async () => inOrder((await peer.call(askPrimary.lines)) as readonly (readonly LogLine[])[], keptLines),
    requests: async () =>
      inOrder((await peer.call(askPrimary.requests)) as readonly (readonly RecentRequest[])[], keptRequests),
    history: async () => (await peer.call(askPrimary.history)) as HistorySnapshot,
    resetWindow: () => {
      own.resetWindow()
      peer.tell(askPrimary.windowBegan)
    },
    close: () => {
      const last: LastFigures = { ...takeChanges(), lines: own.lines(), requests: own.requests() }
      peer.tell(askPrimary.last, last)
    },
  }
}

/** Lists as one, the oldest first, not more than the last `most`. What is of one time stays in the order of the lists. */
export function inOrder<Entry extends { readonly time: number }>(lists: readonly (readonly Entry[])[], most: number): Entry[] {
  return lists
    .flat()
    .sort((a, b) => a.time - b.time)
    .slice(-most)
}
