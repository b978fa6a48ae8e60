/**
 * The owners of jobs in one process, and the jobs that each has: those that it has claimed and not settled. When the
 * reply to a claim is lost, Redis has more of them, which the owner does not know.
 */

interface Owner {
  readonly held: Set<string>
  /** How many claims are not answered yet: until then Redis may have more jobs of the owner. */
  claims: number
}

/** An owner with the ids of its jobs. */
export interface HeldJobs {
  readonly owner: string
  readonly ids: readonly string[]
}

/** The owners. */
export class JobOwners {
  readonly #owners = new Map<string, Owner>()

  /** Records what a claim gives. Rejects as it does. @param claim resolves with the ids */
  async claims<T extends { readonly ids: readonly string[] }>(name: string, claim: () => Promise<T>): Promise<T> {
    const owner = this.#owners.get(name) ?? { held: new Set(), claims: 0 }
    this.#owners.set(name, owner)
    owner.claims += 1
    try {
      const claimed = await claim()
      for (const id of claimed.ids) owner.held.add(id)
      return claimed
    } finally {
      owner.claims -= 1
    }
  }

  /** Records that an owner no longer has jobs. */
  settled(name: string, ids: readonly string[]): void {
    for (const id of ids) this.#owners.get(name)?.held.delete(id)
  }

  /** Forgets an owner. */
  delete(name: string): void {
    this.#owners.delete(name)
  }

  /** Returns the owners for which Redis cannot rightly have more than they know. */
  certain(): HeldJobs[] {
    return [...this.#owners].filter(([, { claims }]) => claims === 0).map(([owner, { held }]) => {
      return { owner, ids: [...held] }
    })
  }

  /** Forgets all owners, and returns their names. */
  clear(): string[] {
    const names = [...this.#owners.keys()]
    this.#owners.clear()
    return names
  }
}
