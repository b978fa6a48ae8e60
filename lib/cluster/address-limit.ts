/**
 * The limit of connections of one address, over all workers: the primary counts.
 *
 * Surprise: a connection is accepted before the primary has heard of it, and cut a moment later when it is too many. To
 * ask first would make every connection wait.
 */
import { createAddressLimit, type AddressLimit } from '../core/address-limit.ts'
import type { Peer } from './peer.ts'

/** The count of all workers. */
export interface AddressLimitHost {
  /** Serves a worker, until its channel closes; to be called before anything has come from it. */
  attach(peer: Peer): void
}

/**
 * Counts for all workers.
 * @param most the most connections of one address, from 1
 */
export function hostAddressLimit(most: number): AddressLimitHost {
  const limit = createAddressLimit(most)
  return {
    attach: (peer) => {
      const open = new Map<number, () => void>()
      peer.on('connection.opened', (taken) => {
        const [id, address] = taken as [number, string] // As sent below.
        open.set(id, limit.enter(address, () => peer.tell('connection.refused', id)))
      })
      peer.on('connection.closed', (id) => {
        open.get(id as number)?.()
        open.delete(id as number)
      })
      void peer.closed.then(() => {
        for (const leave of open.values()) leave()
      })
    },
  }
}

/** The limit as a worker has it. */
export function createClusterAddressLimit(peer: Peer, most: number): AddressLimit {
  const refusals = new Map<number, () => void>()
  let last = 0
  peer.on('connection.refused', (id) => refusals.get(id as number)?.())
  return {
    most,
    enter: (address, refuse) => {
      const id = (last += 1)
      refusals.set(id, refuse)
      peer.tell('connection.opened', [id, address])
      return () => {
        refusals.delete(id)
        peer.tell('connection.closed', id)
      }
    },
  }
}
