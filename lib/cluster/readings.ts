/**
 * The readings of all processes, from the view of a worker: the primary queries every worker and returns the total
 * (`readings-host.ts`).
 */
import type { ThisProcess, Processes } from '../metrics/processes.ts'
import type { Reading } from '../metrics/reading.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The functions that a worker serves. */
export type ServedByWorker = Pick<ThisProcess, 'takeChanges' | 'lines' | 'requests' | 'errors'>

/** The functions that the primary serves. */
export interface ServedByPrimary extends Pick<Processes, 'read' | 'lines' | 'requests' | 'errors' | 'history'> {
  /** Takes the last reading of a worker that ends, with the routes that changed. */
  last(changes: Reading): void
}

/**
 * Connects a worker with the other processes of the server. Its functions reject with `DisconnectedError` when the
 * primary has ended. `close()` sends the last reading, so close the channel afterwards.
 */
export function createClusterProcesses(peer: Peer, thisProcess: ThisProcess): Processes {
  const { takeChanges, lines, requests, errors, clearErrors, beginWindow } = thisProcess
  serve<ServedByWorker>(peer, 'readings', { takeChanges, lines, requests, errors })
  const primary = remote<ServedByPrimary>(peer, 'readings')
  return {
    read: (since) => primary.read(since),
    lines: () => primary.lines(),
    requests: () => primary.requests(),
    errors: () => primary.errors(),
    clearErrors,
    history: () => primary.history(),
    beginWindow,
    close: () => peer.notify('readings.last', [takeChanges()]),
  }
}
