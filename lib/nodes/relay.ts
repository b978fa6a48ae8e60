/**
 * The relay of a server that is a single process: the other nodes are reached over the shared engine.
 */
import type { Relay } from '../control/relay.ts'
import type { Nodes, NodesTurn } from './contract.ts'
import { isOfAllNodes } from './edits.ts'

/** @param ask carries out here what is about this server alone */
export function createNodesRelay(nodes: Pick<Nodes, 'turn'>, ask: Relay['ask']): Relay {
  let current: NodesTurn | undefined
  return {
    turn: async () => {
      const turn = await nodes.turn()
      current = turn
      return () => {
        current = undefined
        turn.end()
      }
    },
    share: async (change) => {
      if (current === undefined || !isOfAllNodes(change)) return []
      const { missing } = await current.record(change)
      return missing
    },
    ask,
  }
}
