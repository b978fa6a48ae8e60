/**
 * The relay of a worker: the other processes are reached by way of the primary.
 */
import type { Relay } from '../control/relay.ts'
import type { Peer } from './peer.ts'

/** Makes the relay of this worker. What it asks for rejects with DisconnectedError when the primary is gone. */
export function createClusterRelay(peer: Peer): Relay {
  return {
    turn: async () => {
      await peer.call('control.turn')
      return () => peer.tell('control.end')
    },
    share: async (change) => (await peer.call('control.share', change)) as readonly string[], // As `control-host.ts` answers.
    ask: async (command) => void (await peer.call('control.ask', command)),
  }
}
