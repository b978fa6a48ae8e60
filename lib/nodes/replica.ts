/**
 * What this node has of the state that all have in common, and how it comes from one to the next: step by step, each taken
 * up by its processes.
 *
 * Surprise: when a step fails, the steps before it count. What is left to do is found anew, from where the node is then.
 */
import type { Change } from '../control/relay.ts'
import { judge } from './credentials.ts'
import { differencesOf } from './differences.ts'
import { beginning, type Position } from './position.ts'
import { adminOf, edited, type Edits, type SharedAdmin, type State } from './state.ts'
import { TraceEnds } from './trace-ends.ts'

export interface ReplicaOptions {
  /**
   * Lets the processes of this node take up a change. Resolves with a line for each that has not and is replaced; rejects
   * when none has.
   * @param isBack whether it undoes what was carried out here
   */
  readonly takeUp: (change: Change, isBack: boolean) => Promise<readonly string[]>
  /** What the configuration says of the trace switches. */
  readonly trace: Readonly<Record<string, boolean>>
  /** The credentials that this node has of its own; empty texts where it has none. */
  readonly ownAdmin: () => SharedAdmin
  /** The engine's time in milliseconds. */
  readonly nowMs: () => number
  /** Told of a switch that goes back by itself. */
  readonly onTraceEnd: (module: string, enabled: boolean) => void
}

export class Replica {
  readonly #options: ReplicaOptions
  readonly #traceEnds: TraceEnds
  #state: State = new Map()
  #position: Position = beginning
  /** Whether the node is all that its position says. */
  #isWhole = true

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.#traceEnds = new TraceEnds((module, enabled) => {
      options.onTraceEnd(module, enabled ?? options.trace[module] ?? true)
    })
  }

  get state(): State {
    return this.#state
  }

  get position(): Position {
    return this.#position
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /** The files were loaded when the last reload was that one. */
  loadedAt(reload: string | undefined): void {
    if (reload !== undefined) this.#state = edited(this.#state, { set: [['reload', reload]], removed: [] })
  }

  /** Whether this node has credentials of its own that are not the shared ones. */
  hasOtherCredentials(): boolean {
    return judge(this.#options.ownAdmin(), adminOf(this.#state)) === 'differ'
  }

  /** Whether this node's own credentials are to be shared. */
  givesCredentials(): boolean {
    return judge(this.#options.ownAdmin(), adminOf(this.#state)) === 'give'
  }

  /**
   * Brings the node to a state.
   * @returns a line for each process that has not taken it up and is replaced
   * @throws what the node cannot take up; `isWhole` is false then
   */
  bringTo(state: State, position: Position): Promise<readonly string[]> {
    return this.#bringTo(state, position, false)
  }

  /** The node is in that state. */
  recorded(state: State, position: Position): void {
    this.#state = state
    this.#position = position
    this.#isWhole = true
    this.#traceEnds.follow(state, this.#options.nowMs())
  }

  /** Takes back what was carried out here and could not be recorded. Throws as `bringTo` does. */
  async takeBack(edits: Edits): Promise<void> {
    const before = this.#state
    this.#state = edited(before, edits)
    await this.#bringTo(before, this.#position, true)
  }

  close(): void {
    this.#traceEnds.close()
  }

  async #bringTo(state: State, position: Position, isBack: boolean): Promise<readonly string[]> {
    const { takeUp, trace, nowMs } = this.#options
    const lines: string[] = []
    this.#isWhole = false
    for (const { change, edits } of differencesOf(this.#state, state, { nowMs: nowMs(), trace })) {
      if (change.admin === undefined || this.#takesCredentials(state)) lines.push(...(await takeUp(change, isBack)))
      this.#state = edited(this.#state, edits)
    }
    this.recorded(state, position)
    return lines
  }

  #takesCredentials(state: State): boolean {
    return judge(this.#options.ownAdmin(), adminOf(state)) === 'take'
  }
}
