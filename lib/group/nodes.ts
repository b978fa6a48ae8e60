/**
 * The nodes as the workers of one of them know them: the primary is the node, and tells its workers what they must show.
 */
import type { NodesView } from './node.ts'
import type { ListedNode } from './node-list.ts'
import type { Peer } from './peer.ts'

/** What decides whether a worker is ready. */
export interface NodesHealth {
  readonly isReady: boolean
  readonly warnings: readonly string[]
}

export interface NodesHost {
  /** Answers a worker, and tells it what changes, until its channel closes. */
  attach(peer: Peer): void
  readonly health: NodesHealth
  /** To be called when the health may be another. */
  look(): void
}

/** Makes the primary's part. */
export function hostNodes(nodes: NodesView): NodesHost {
  const peers = new Set<Peer>()
  const healthNow = (): NodesHealth => ({ isReady: nodes.isReady, warnings: nodes.warnings() })
  let told = ''
  return {
    attach: (peer) => {
      peers.add(peer)
      void peer.closed.then(() => peers.delete(peer))
      peer.on('nodes.list', () => nodes.list())
    },
    get health() {
      return healthNow()
    },
    look: () => {
      const health = healthNow()
      const text = JSON.stringify(health)
      if (text === told) return
      told = text
      for (const peer of peers) peer.tell('nodes.health', health)
    },
  }
}

/**
 * Makes the view of a worker; to be called before it joins, since it is told what changes from then on.
 * @returns takes the health as it was when the worker joined
 */
export function listenForNodes(peer: Peer): (joined: NodesHealth) => NodesView {
  let told: NodesHealth | undefined
  peer.on('nodes.health', (health) => {
    told = health as NodesHealth // The primary is of the same program.
  })
  return (joined) => ({
    get isReady() {
      return (told ?? joined).isReady
    },
    warnings: () => (told ?? joined).warnings,
    list: async () => (await peer.call('nodes.list')) as readonly ListedNode[], // As above.
  })
}
