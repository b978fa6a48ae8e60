/**
 * Keeps this node as the others are: when one of them has recorded a change, it reads the state and takes up what is new.
 * What fails is said, and tried again until it succeeds.
 *
 * Surprise: the newest state counts, wherever it lies. An engine that came back with an older one, or with none, is given
 * that of the node.
 */
import { reasonOf } from '../base/reason.ts'
import { SerialQueue } from '../base/serial-queue.ts'
import type { ModuleLogger } from '../log/logger.ts'
import { awayError } from '../redis/away.ts'
import { RedisAwayError } from '../redis/errors.ts'
import type { RecordedMessage } from './messages.ts'
import { isSame, type Position } from './position.ts'
import type { Replica } from './replica.ts'
import type { SharedState } from './shared-state.ts'
import type { Edits } from './state.ts'
import { notAsOthers } from './warnings.ts'

export interface UpkeepOptions {
  readonly replica: Replica
  readonly shared: SharedState
  readonly log: ModuleLogger
}

/** The most beats from a failure to the next attempt. */
const longestPause = 10
/** After so many beats a node that cannot put back its own state takes what the engine has. */
const patience = 3

export class Upkeep {
  readonly #options: UpkeepOptions
  /** What is done with the state that this node is in, one after the other. */
  readonly #inTurn = new SerialQueue()
  #isAligning = false
  #isLoaded = false
  #isChecked = false
  #problem = ''
  #failures = 0
  #pause = 0
  /** Beats since the engine was found to have less than this node had. */
  #lost = 0

  constructor(options: UpkeepOptions) {
    this.#options = options
  }

  /** Why the node is not as the others; empty: nothing is known of that. */
  get problem(): string {
    return this.#problem
  }

  /** Whether the node was found to be as the others since they could last be heard. */
  get isCurrent(): boolean {
    return this.#isLoaded && this.#isChecked && this.#problem === ''
  }

  /** The files are loaded: what they do not hold is taken up. Never rejects. */
  async begin(): Promise<void> {
    this.#isLoaded = true
    await this.#align()
  }

  /** The others cannot be heard. */
  cut(): void {
    this.#isChecked = false
  }

  /** Where the state stands, as each beat has it. */
  look(position: Position): void {
    if (!this.#isLoaded) return
    this.#pause -= 1
    if (this.#problem === '' && isSame(position, this.#options.replica.position)) this.#isChecked = true
    else if (this.#pause <= 0) void this.#align()
  }

  /**
   * Takes up what another node has recorded.
   * @returns a line for each process that has not, or one for the node
   */
  follow(message: RecordedMessage): Promise<readonly string[]> {
    if (!this.#isLoaded) return Promise.resolve([]) // It begins with it.
    return this.inOrder(() => this.#attempt(() => this.#take(message))).catch((error: unknown) => [reasonOf(error)])
  }

  /**
   * Enters a turn: the node is brought to where the state stands, and nothing else is done with it for a while.
   * @param position where the state stands
   * @param freed resolves when the change is recorded, or is not to be
   * @throws HttpError 503; RedisAwayError
   */
  enter(position: Position, freed: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      void this.inOrder(async () => {
        try {
          await this.#alignUnder(position)
        } catch (error) {
          return reject(error as Error) // Nothing else is thrown there.
        }
        resolve()
        await freed
      })
    })
  }

  /** Takes back what was carried out here, in a turn, and could not be recorded. Never rejects. */
  async takeBack(edits: Edits): Promise<void> {
    await this.#attempt(() => this.#options.replica.takeBack(edits)).catch(() => {}) // It has been said.
  }

  /** Runs one after the other what changes the state that this node is in. */
  inOrder<Result>(work: () => Promise<Result>): Promise<Result> {
    return this.#inTurn.run(work)
  }

  async #take({ after }: RecordedMessage): Promise<readonly string[]> {
    const { replica } = this.#options
    const isHere = replica.isWhole && (isSame(replica.position, after) || replica.position.seq > after.seq)
    return isHere ? [] : this.#bringToShared()
  }

  /** Looks at the whole state, once at a time. */
  async #align(): Promise<void> {
    if (this.#isAligning) return
    this.#isAligning = true
    await this.inOrder(() => this.#attempt(() => this.#bringToShared())).catch(() => {}) // It has been said.
    this.#isAligning = false
  }

  async #bringToShared(): Promise<readonly string[]> {
    const { replica, shared } = this.#options
    const found = await shared.read()
    const hasLost = found.position.seq < replica.position.seq
    this.#lost = hasLost ? this.#lost + 1 : 0
    if (hasLost && replica.isWhole) await this.#putBack()
    else if (hasLost && this.#lost < patience) throw new PendingError()
    if (replica.isWhole && (hasLost || isSame(found.position, replica.position))) return []
    return replica.bringTo(found.state, found.position)
  }

  async #alignUnder(position: Position): Promise<void> {
    const { replica, shared } = this.#options
    if (!this.#isLoaded) throw awayError('this node is still loading its files')
    const refuse = (error: unknown): never => {
      throw error instanceof RedisAwayError ? error : awayError(notAsOthers(reasonOf(error)), error)
    }
    if (replica.isWhole && position.seq < replica.position.seq) await this.#putBack().catch(refuse)
    else if (!replica.isWhole || !isSame(position, replica.position)) {
      await this.#attempt(async () => {
        const found = await shared.read()
        return replica.bringTo(found.state, found.position)
      }).catch(refuse)
    }
  }

  /** Rejects with PendingError where the engine has a newer state by now. */
  async #putBack(): Promise<void> {
    const { replica, shared, log } = this.#options
    if (!(await shared.putBack(replica))) throw new PendingError()
    log.warn(`the shared engine had lost what the nodes have in common: put back as it was after change ${replica.position.seq}`)
  }

  /** Does what makes this node as the others, and says what came of it. */
  async #attempt<Result>(work: () => Promise<Result>): Promise<Result> {
    const { log } = this.#options
    try {
      const result = await work()
      if (this.#problem !== '') log.info('this node is as the others again')
      this.#problem = ''
      this.#failures = 0
      this.#pause = 0
      this.#isChecked = true
      return result
    } catch (error) {
      if (error instanceof RedisAwayError || error instanceof PendingError) throw error
      const reason = reasonOf(error)
      if (reason !== this.#problem) log.error(notAsOthers(reason))
      this.#problem = reason
      this.#failures += 1
      this.#pause = Math.min(this.#failures, longestPause)
      throw error
    }
  }
}

/** It is being put right, and the next beat looks again. */
class PendingError extends Error {
  override readonly name = 'PendingError'
  override readonly message = 'the shared engine has lost what the nodes have in common'
}
