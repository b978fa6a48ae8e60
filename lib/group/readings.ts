/**
 * The readings of all processes as a worker gets them: it asks the primary, which asks every worker and answers with
 * the total (`readings-host.ts`).
 */
import type { ErrorGroup } from '../log/error-groups.ts'
import type { LogLine } from '../log/recent-lines.ts'
import type { HistorySnapshot } from '../metrics/history.ts'
import type { RecentRequest } from '../metrics/metrics.ts'
import type { OwnProcess, Processes, Since } from '../metrics/processes.ts'
import type { Reading, ServerReading } from '../metrics/reading.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The functions that a worker serves. */
export interface ServedByWorker {
  /** A reading since the start, with the routes that changed since the last answer. */
  changes(): Reading
  lines(): readonly LogLine[]
  requests(): readonly RecentRequest[]
  errors(): readonly ErrorGroup[]
}

/** The functions that the primary serves. */
export interface ServedByPrimary {
  read(since: Since): Promise<ServerReading>
  lines(): Promise<readonly LogLine[]>
  requests(): Promise<readonly RecentRequest[]>
  errors(): Promise<readonly ErrorGroup[]>
  history(): HistorySnapshot
  /** Takes the last reading of a worker that ends, with the routes that changed. */
  last(changes: Reading): void
}

/**
 * Connects a worker with the other processes of the server. Its functions reject with `DisconnectedError` when the
 * primary has ended. `close()` sends the last reading, so close the channel after it.
 */
export function createClusterProcesses(peer: Peer, own: OwnProcess): Processes {
  const { takeChanges: changes, lines, requests, errors, clearErrors, beginWindow } = own
  serve<ServedByWorker>(peer, 'readings', { changes, lines, requests, errors })
  const primary = remote<ServedByPrimary>(peer, 'readings')
  return {
    read: (since) => primary.read(since),
    lines: () => primary.lines(),
    requests: () => primary.requests(),
    errors: () => primary.errors(),
    clearErrors,
    history: () => primary.history(),
    beginWindow,
    close: () => peer.tell('readings.last', [changes()]),
  }
}
