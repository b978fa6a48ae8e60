/** The list of nodes in the workers of one node. The primary is the node and sends its workers what they display. */
import { isObject } from '../base/object.ts'
import type { NodesView } from '../nodes/node.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The functions that the primary serves. */
type Served = Pick<NodesView, 'list' | 'errors' | 'clearErrors'>

/** Decides whether a worker is ready. */
export interface NodesHealth {
  readonly isReady: boolean
  readonly warnings: readonly string[]
}

/** Makes the primary's side. */
export function hostNodes(nodes: NodesView) {
  const peers = new Set<Peer>()
  const health = (): NodesHealth => ({ isReady: nodes.isReady, warnings: nodes.warnings() })
  let sent = ''
  return {
    /** Serves a worker, and sends it each change of the health, until its channel closes. */
    attach: (peer: Peer): void => {
      peers.add(peer)
      void peer.closed.then(() => peers.delete(peer))
      serve<Served>(peer, 'nodes', {
        list: () => nodes.list(),
        errors: () => nodes.errors(),
        clearErrors: () => nodes.clearErrors(),
      })
    },
    health,
    /** Call it when the health may have changed. */
    healthChanged: (): void => {
      const now = health()
      const text = JSON.stringify(now)
      if (text === sent) return
      sent = text
      for (const peer of peers) peer.notify('nodes.health', now)
    },
  }
}

function isHealth(value: unknown): value is NodesHealth {
  if (!isObject(value) || typeof value['isReady'] !== 'boolean') return false
  const { warnings } = value
  return Array.isArray(warnings) && warnings.every((warning) => typeof warning === 'string')
}

/**
 * Makes the worker's side. Call it before the worker joins: the primary sends changes from then on.
 * @returns a function that takes the health at the time of joining and returns the view
 */
export function listenForNodes(peer: Peer): (joined: NodesHealth) => NodesView {
  const { list, errors, clearErrors } = remote<Served>(peer, 'nodes')
  let latest: NodesHealth | undefined
  peer.on('nodes.health', (health) => {
    if (!isHealth(health)) throw new TypeError('Ignored a damaged health from the primary')
    latest = health
  })
  return (joined) => ({
    get isReady() {
      return (latest ?? joined).isReady
    },
    warnings: () => (latest ?? joined).warnings,
    list,
    errors,
    clearErrors,
  })
}
