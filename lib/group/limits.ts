/**
 * Counts that hold for all processes, in the primary: failed logins and the connections of each address.
 *
 * A worker accepts a connection before it tells the primary, and closes it a moment later when it is one too many:
 * asking first would make every connection wait.
 */
import { createLoginThrottle, type LoginThrottle } from '../admin/throttle.ts'
import { createAddressLimit, type AddressLimit } from '../core/address-limit.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The functions that the primary serves. Each worker numbers its own connections. */
interface Served {
  begin(address: string, isKnown: boolean | null): ReturnType<LoginThrottle['begin']>
  succeeded(address: string): void
  failed(address: string): ReturnType<LoginThrottle['failed']>
  opened(id: number, address: string): void
  closed(id: number): void
}

/** The primary's side: the counts of all workers. */
interface LimitsHost {
  /** Serves a worker until its channel closes. Call it before the first message of the worker arrives. */
  attach(peer: Peer): void
}

/**
 * Makes the primary's side.
 * @param most the most connections of one address, from 1
 */
export function hostLimits(most: number): LimitsHost {
  const throttle = createLoginThrottle()
  const limit = createAddressLimit(most)
  return {
    attach: (peer) => {
      const open = new Map<number, () => void>()
      serve<Served>(peer, 'limits', {
        begin: (address, isKnown) => throttle.begin(address, isKnown ?? undefined),
        succeeded: (address) => throttle.succeeded(address),
        failed: (address) => throttle.failed(address),
        opened: (id, address) => {
          open.set(id, limit.enter(address, () => peer.tell('limits.refused', id)))
        },
        closed: (id) => {
          open.get(id)?.()
          open.delete(id)
        },
      })
      void peer.closed.then(() => {
        for (const leave of open.values()) leave()
      })
    },
  }
}

/** Makes the throttle of a worker. */
export function createClusterThrottle(peer: Peer): LoginThrottle {
  const { begin, succeeded, failed } = remote<Served>(peer, 'limits')
  return {
    begin: (address, isKnown) => begin(address, isKnown ?? null),
    succeeded: (address) => void succeeded(address).catch(() => {}), // A worker without its primary stops.
    failed,
  }
}

/** Makes the limit of connections of a worker. */
export function createClusterAddressLimit(peer: Peer, most: number): AddressLimit {
  const refusals = new Map<number, () => void>()
  let last = 0
  peer.on('limits.refused', (id) => refusals.get(id as number)?.())
  return {
    most,
    enter: (address, refuse) => {
      const id = (last += 1)
      refusals.set(id, refuse)
      peer.tell('limits.opened', [id, address])
      return () => {
        refusals.delete(id)
        peer.tell('limits.closed', [id])
      }
    },
  }
}
