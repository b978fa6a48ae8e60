/**
 * What a server has of the nodes: the others, as it needs them to change as one with them.
 */
import type { Change, Relay } from '../control/relay.ts'
import type { ListedNode } from './registry.ts'

/** What the panel shows of the nodes. */
export interface NodesView {
  /** Whether this node is as the others. */
  readonly isReady: boolean
  /** What the operator should know. */
  warnings(): readonly string[]
  /** All nodes of the last hour, by name. */
  list(): Promise<readonly ListedNode[]>
}

/** A change that is recorded: it counts from now on. */
export interface Recorded {
  /** Resolves when the other nodes have answered, with a line for each that has not taken it up. Never rejects. */
  readonly missing: Promise<readonly string[]>
}

/** The turn of all nodes. */
export interface NodesTurn {
  /**
   * Records what this node has carried out. Rejects with HttpError 503 where that cannot be: the node has taken it back
   * then.
   */
  record(change: Change): Promise<Recorded>
  /** Lets the next one begin. To be called once. */
  end(): void
}

export interface Nodes extends NodesView {
  /** Begins to hear of the others; to be called before the files are loaded. Never rejects. */
  open(): Promise<void>
  /** Takes up what the files do not hold; to be called when they are loaded. Never rejects: what fails is tried again. */
  join(): Promise<void>
  /** Says where the server listens: 0, where it is no port. */
  listens(port: number): void
  /** Says that a stop has begun. */
  stops(): void
  /** Leaves the others. Never rejects. */
  leave(): Promise<void>
  /**
   * Waits for the turn of all. Rejects with HttpError 503 while the engine is away, or where this node is not as the others.
   */
  turn(): Promise<NodesTurn>
  /**
   * What takes changes to the other nodes, for a server that is a single process.
   * @param ask carries out here what is about this server alone
   */
  relay(ask: Relay['ask']): Relay
}
