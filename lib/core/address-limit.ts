/**
 * Limits the connections that one client address may hold open. IPv6 addresses count by their /64.
 */
import { networkOf, normalizeIp } from '../http/ip-address.ts'

/** Counts the connections of each address. */
export interface AddressLimit {
  /** The most connections of one address. */
  readonly most: number
  /**
   * Counts a new connection.
   * @param refuse called when its address has too many: at once, or a moment later when other processes count too
   * @returns a function to call when the connection closes, refused or not
   */
  enter(address: string, refuse: () => void): () => void
}

/**
 * Creates a limit that counts only the connections of this process.
 * @param most the maximum per address, from 1
 */
export function createAddressLimit(most: number): AddressLimit {
  const perNetwork = new Map<string, number>()
  return {
    most,
    enter: (address, refuse) => {
      const network = networkOf(normalizeIp(address) ?? address)
      const before = perNetwork.get(network) ?? 0
      if (before >= most) {
        refuse()
        return () => {}
      }
      perNetwork.set(network, before + 1)
      return () => {
        const left = (perNetwork.get(network) as number) - 1 // Counted above.
        if (left === 0) perNetwork.delete(network)
        else perNetwork.set(network, left)
      }
    },
  }
}
