/**
 * Waits until every other node has taken up a change, as it says on this node's own channel or in the list of nodes.
 */
import type { Position } from './position.ts'

/** What a node says of a change. */
export interface Acknowledgement {
  readonly stamp: string
  readonly node: string
  /** The name of the node. */
  readonly name: string
  /** What has not taken it up, and why; none when all is well. */
  readonly lines: readonly string[]
}

/** A change that is waited for. */
interface Waiting {
  readonly seq: number
  /** The ids of those that have not answered; undefined: it is not known yet whose answers are wanted. */
  missing: Set<string> | undefined
  /** What came before that was known. */
  readonly early: Acknowledgement[]
  readonly lines: string[]
  done: () => void
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
  /** By the stamps of the changes. */
  readonly #waiting = new Map<string, Waiting>()

  /**
   * @param patienceMs how long a node may take
   * @param nameOf the name of a node by its id
   */
  constructor(patienceMs: number, nameOf: (id: string) => string) {
    this.#patienceMs = patienceMs
    this.#nameOf = nameOf
  }

  /** Keeps from now on what comes for a change. To be called before anybody is told of it; `all` or `forget` follows. */
  expect({ seq, stamp }: Position): void {
    this.#waiting.set(stamp, { seq, missing: undefined, early: [], lines: [], done: () => {} })
  }

  /** Lets go of a change that nobody was told of. */
  forget({ stamp }: Position): void {
    this.#waiting.delete(stamp)
  }

  /**
   * Waits until all have answered, or for as long as a node may take.
   * @param ids those that are to take it up
   * @returns a line for each that has not
   */
  async all({ stamp }: Position, ids: readonly string[]): Promise<readonly string[]> {
    const waiting = this.#waiting.get(stamp)
    if (waiting === undefined) return []
    const missing = new Set(ids)
    waiting.missing = missing
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      waiting.done = resolve
      timer = setTimeout(resolve, this.#patienceMs)
      for (const each of waiting.early) this.take(each)
      endIfAll(waiting)
    })
    clearTimeout(timer)
    this.#waiting.delete(stamp)
    const reason = `it did not answer within ${this.#patienceMs / 1000} s`
    return [...waiting.lines, ...[...missing].map((id) => `node ${this.#nameOf(id)}: ${reason}`)]
  }

  /** What a node said. */
  take(said: Acknowledgement): void {
    const waiting = this.#waiting.get(said.stamp)
    if (waiting === undefined) return
    if (waiting.missing === undefined) return void waiting.early.push(said)
    if (!waiting.missing.delete(said.node)) return
    waiting.lines.push(...said.lines.map((line) => `node ${said.name}: ${line}`))
    endIfAll(waiting)
  }

  /** A node has left. */
  left(id: string): void {
    for (const waiting of this.#waiting.values()) {
      waiting.missing?.delete(id)
      endIfAll(waiting)
    }
  }

  /**
   * What the list of nodes says: an answer that was lost on its way is known from there, and who is gone is not waited for.
   * One that is not listed is waited for: the engine may have lost its list.
   */
  look(nodes: readonly WaitedNode[]): void {
    for (const waiting of this.#waiting.values()) {
      for (const { id, seq, isThere } of nodes) if (!isThere || seq >= waiting.seq) waiting.missing?.delete(id)
      endIfAll(waiting)
    }
  }
}

function endIfAll({ missing, done }: Waiting): void {
  if (missing?.size === 0) done()
}
