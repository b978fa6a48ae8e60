/**
 * The count of failed logins in the primary, so that who guesses passwords is slowed down by all processes together.
 */
import { createLoginThrottle, type LoginThrottle } from '../admin/throttle.ts'
import type { Peer } from './peer.ts'

/** The one throttle of a server. */
export interface ThrottleHost {
  /** Serves a worker; to be called before anything has come from it. */
  attach(peer: Peer): void
}

/** Makes the one throttle. */
export function hostThrottle(): ThrottleHost {
  const throttle = createLoginThrottle()
  return {
    attach: (peer) => {
      peer.on('login.begin', (attempt) => throttle.begin(...(attempt as [address: string, isKnown?: boolean])))
      peer.on('login.succeeded', (address) => throttle.succeeded(address as string))
      peer.on('login.failed', (address) => throttle.failed(address as string))
    },
  }
}

/** The throttle as a worker has it. */
export function createClusterThrottle(peer: Peer): LoginThrottle {
  return {
    begin: async (address, isKnown) => (await peer.call('login.begin', [address, isKnown])) as number,
    succeeded: (address) => peer.tell('login.succeeded', address),
    failed: async (address) => (await peer.call('login.failed', address)) as number,
  }
}
