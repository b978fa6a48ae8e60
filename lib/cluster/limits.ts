/**
 * Counts shared by all processes, kept in the primary: failed logins, wrong codes, connections per address, and the
 * token buckets of limits.
 *
 * A worker accepts a connection before it notifies the primary, and closes it a moment later when it exceeds the limit:
 * asking first would delay every connection.
 */
import { createCodeThrottle, type CodeThrottle } from '../access/code-throttle.ts'
import { createLoginThrottle, type LoginThrottle } from '../access/throttle.ts'
import { createAddressLimit, type AddressLimit } from '../core/address-limit.ts'
import { Buckets, type BucketSize, type BucketStore, type Taken } from '../protection/buckets.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The functions that the primary serves. Each worker numbers its connections. */
interface Served {
  begin(address: string, isKnown: boolean | null): ReturnType<LoginThrottle['begin']>
  succeeded(address: string): void
  failed(address: string): ReturnType<LoginThrottle['failed']>
  beginCode(isKnown: boolean): ReturnType<CodeThrottle['begin']>
  codeSucceeded(): void
  codeFailed(): Promise<void>
  useTicket(id: string): ReturnType<CodeThrottle['useTicket']>
  opened(id: number, address: string): void
  closed(id: number): void
  take(rule: string, size: BucketSize, key: string): Taken
}

/**
 * Makes the primary's side: the counts of all workers.
 * @param most the maximum number of connections per address, from 1
 * @param open opens the buckets of a rule
 */
export function hostLimits(most: number, open = (size: BucketSize): Buckets => new Buckets(size)) {
  const throttle = createLoginThrottle()
  const codes = createCodeThrottle()
  const limit = createAddressLimit(most)
  const buckets = new Map<string, Buckets>()

  /**
   * Workers that reloaded at different moments may have different sizes for one rule. Full buckets are removed when new
   * ones are opened, so that rules changed by a reload do not accumulate.
   */
  function bucketsOf(rule: string, size: BucketSize): Buckets {
    const id = `${rule} ${size.burst} ${size.intervalMs}`
    const known = buckets.get(id)
    if (known !== undefined) return known
    for (const [other, { areFull }] of buckets) if (areFull) buckets.delete(other)
    const opened = open(size)
    buckets.set(id, opened)
    return opened
  }

  return {
    /** Serves a worker until its channel closes. Call it before the first message of the worker arrives. */
    attach: (peer: Peer): void => {
      const open = new Map<number, () => void>()
      serve<Served>(peer, 'limits', {
        begin: (address, isKnown) => throttle.begin(address, isKnown ?? undefined),
        succeeded: (address) => throttle.succeeded(address),
        failed: (address) => throttle.failed(address),
        beginCode: (isKnown) => codes.begin(isKnown),
        codeSucceeded: () => codes.succeeded(),
        codeFailed: () => codes.failed(),
        useTicket: (id) => codes.useTicket(id),
        opened: (id, address) => {
          open.set(id, limit.enter(address, () => peer.notify('limits.refused', id)))
        },
        closed: (id) => {
          open.get(id)?.()
          open.delete(id)
        },
        take: (rule, size, key) => bucketsOf(rule, size).take(key),
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

/** Makes the throttle of codes of a worker. */
export function createClusterCodeThrottle(peer: Peer): CodeThrottle {
  const { beginCode, codeSucceeded, codeFailed, useTicket } = remote<Served>(peer, 'limits')
  return {
    begin: (isKnown) => beginCode(isKnown),
    succeeded: () => void codeSucceeded().catch(() => {}), // A worker without its primary stops.
    failed: codeFailed,
    useTicket: (id) => useTicket(id),
  }
}

/** Opens the buckets of a rule in a worker. */
export function createClusterBuckets(peer: Peer): (rule: string, size: BucketSize) => BucketStore {
  const { take } = remote<Served>(peer, 'limits')
  return (rule, size) => ({ take: (key) => take(rule, size, key) })
}

/** Makes the connection limit of a worker. */
export function createClusterAddressLimit(peer: Peer, most: number): AddressLimit {
  const refusals = new Map<number, () => void>()
  let last = 0
  peer.on('limits.refused', (id) => refusals.get(id as number)?.())
  return {
    most,
    enter: (address, refuse) => {
      const id = (last += 1)
      refusals.set(id, refuse)
      peer.notify('limits.opened', [id, address])
      return () => {
        refusals.delete(id)
        peer.notify('limits.closed', [id])
      }
    },
  }
}
