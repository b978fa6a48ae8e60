/**
 * Waits until every other node has taken up a change, as it says on this node's own channel or in the list of nodes.
 */

/** What a node says of a change. */
export interface Acknowledgement {
  readonly stamp: string
  readonly node: string
  /** The name of the node. */
  readonly name: string
  /** What has not taken it up, and why; none when all is well. */
  readonly lines: readonly string[]
}

interface Waiting {
  readonly stamp: string
  readonly seq: number
  /** The ids of those that have not answered. */
  readonly missing: Set<string>
  readonly lines: string[]
  readonly done: () => void
}

/** A node that may be waited for, as the list of nodes has it. */
export interface WaitedNode {
  readonly id: string
  readonly seq: number
  /** Whether it may still answer. */
  readonly isThere: boolean
}

export class Acknowledgements {
  readonly #patienceMs: number
  readonly #nameOf: (id: string) => string
  /** Those that came before their change was waited for. */
  readonly #early = new Map<string, Acknowledgement[]>()
  #waiting: Waiting | undefined = undefined

  /**
   * @param patienceMs how long a node may take
   * @param nameOf the name of a node by its id
   */
  constructor(patienceMs: number, nameOf: (id: string) => string) {
    this.#patienceMs = patienceMs
    this.#nameOf = nameOf
  }

  /** Keeps from now on what comes for a change. To be called before it is told to anybody. */
  expect(stamp: string): void {
    this.#early.set(stamp, [])
  }

  /** Lets go of a change that was told to nobody. */
  forget(stamp: string): void {
    this.#early.delete(stamp)
  }

  /**
   * Waits for one change at a time.
   * @param ids those that are to take it up
   * @returns a line for each that has not
   */
  async all(stamp: string, seq: number, ids: readonly string[]): Promise<readonly string[]> {
    const early = this.#early.get(stamp) ?? []
    this.#early.delete(stamp)
    let timer: NodeJS.Timeout | undefined
    const lines: string[] = []
    await new Promise<void>((resolve) => {
      const waiting: Waiting = { stamp, seq, missing: new Set(ids), lines, done: resolve }
      this.#waiting = waiting
      timer = setTimeout(() => {
        const reason = `it did not answer within ${this.#patienceMs / 1000} s`
        for (const id of waiting.missing) lines.push(`node ${this.#nameOf(id)}: ${reason}`)
        resolve()
      }, this.#patienceMs)
      for (const each of early) this.take(each)
      this.#endIfAll()
    })
    clearTimeout(timer)
    this.#waiting = undefined
    return lines
  }

  /** What a node said. */
  take(said: Acknowledgement): void {
    const waiting = this.#waiting
    if (waiting?.stamp !== said.stamp) return void this.#early.get(said.stamp)?.push(said)
    if (!waiting.missing.delete(said.node)) return
    waiting.lines.push(...said.lines.map((line) => `node ${said.name}: ${line}`))
    this.#endIfAll()
  }

  /** A node has left. */
  left(id: string): void {
    if (this.#waiting?.missing.delete(id) === true) this.#endIfAll()
  }

  /**
   * What the list of nodes says: an answer that was lost on its way is known from there, and who is gone is not waited for.
   */
  look(nodes: readonly WaitedNode[]): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    for (const id of [...waiting.missing]) {
      const node = nodes.find((each) => each.id === id)
      if (node === undefined) continue // The engine has lost its list, and will have it again.
      if (!node.isThere || node.seq >= waiting.seq) waiting.missing.delete(id)
    }
    this.#endIfAll()
  }

  #endIfAll(): void {
    if (this.#waiting?.missing.size === 0) this.#waiting.done()
  }
}
