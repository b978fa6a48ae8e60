/**
 * The limit of connections that one client address may hold open.
 */

/** Counts the connections of each address. */
export interface AddressLimit {
  /** The most connections of one address. */
  readonly most: number
  /**
   * Counts a connection that was opened.
   * @param refuse called when its address has too many: at once, or a moment later where others count along
   * @returns to be called when the connection has closed, refused or not
   */
  enter(address: string, refuse: () => void): () => void
}

/**
 * Counts for this process alone.
 * @param most the most connections of one address, from 1
 */
export function createAddressLimit(most: number): AddressLimit {
  const perAddress = new Map<string, number>()
  return {
    most,
    enter: (address, refuse) => {
      const before = perAddress.get(address) ?? 0
      if (before >= most) {
        refuse()
        return () => {}
      }
      perAddress.set(address, before + 1)
      return () => {
        const left = (perAddress.get(address) as number) - 1 // It was counted above.
        if (left === 0) perAddress.delete(address)
        else perAddress.set(address, left)
      }
    },
  }
}
