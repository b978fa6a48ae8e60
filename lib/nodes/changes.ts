/**
 * The changes that this node makes: each in the turn of all, carried out here, then recorded, then taken up by the others.
 *
 * Surprise: what cannot be recorded is taken back before the answer. Where nobody knows whether it was recorded, as when the
 * connection ended in that moment, the node takes it up again if it was.
 */
import { randomUUID } from 'node:crypto'
import type { Change } from '../control/relay.ts'
import { answerFor, awayError } from '../redis/away.ts'
import type { Acknowledgements } from './acknowledgements.ts'
import type { NodesTurn, Recorded } from './contract.ts'
import { editsOf } from './edits.ts'
import type { Membership } from './membership.ts'
import type { Replica } from './replica.ts'
import type { SharedState } from './shared-state.ts'
import { edited, isEmpty } from './state.ts'
import type { HeldTurn, TurnLock } from './turn-lock.ts'
import type { Upkeep } from './upkeep.ts'

export interface ChangesOptions {
  /** The id of this node. */
  readonly id: string
  readonly lock: TurnLock
  readonly upkeep: Upkeep
  readonly replica: Replica
  readonly shared: SharedState
  readonly membership: Membership
  readonly acknowledgements: Acknowledgements
  /** Called with a change that was taken back, as far as it can be: credentials stay in the file of this node. */
  readonly onTakenBack: (change: Change) => void
}

const stoodStill = 'this node stood still and lost its turn, so nothing was changed'
const engineLost = 'the shared engine has lost what the nodes have in common, so nothing was changed'

export class Changes {
  readonly #options: ChangesOptions

  constructor(options: ChangesOptions) {
    this.#options = options
  }

  /** As `Nodes.turn`. */
  async turn(): Promise<NodesTurn> {
    const { lock, upkeep } = this.#options
    let free: () => void = () => {}
    const freed = new Promise<void>((resolve) => (free = resolve))
    let held: HeldTurn | undefined
    try {
      held = await lock.take()
      await upkeep.enter(held.position, freed)
    } catch (error) {
      await held?.end()
      throw answerFor(error)
    }
    const turn = held
    return {
      record: (change) => this.#record(turn, change).finally(free),
      end: () => {
        free()
        void turn.end()
      },
    }
  }

  async #record({ token }: HeldTurn, change: Change): Promise<Recorded> {
    const { id, replica, shared, membership, acknowledgements, upkeep, onTakenBack } = this.#options
    const { state, position: before } = replica
    const after = { seq: before.seq + 1, stamp: randomUUID() }
    const edits = editsOf(state, change, { seq: after.seq, nowMs: membership.nowMs() })
    if (isEmpty(edits)) return { missing: Promise.resolve([]) }
    acknowledgements.expect(after)
    try {
      const outcome = await shared.record(token, before, edits, { kind: 'recorded', node: id, after })
      if (outcome === 'lost') throw awayError(stoodStill)
      if (outcome === 'behind') throw awayError(engineLost)
      replica.recorded(edited(state, edits), after)
      const others = new Set([...outcome.ids, ...membership.liveIds()]) // One of both may have been lost.
      others.delete(id)
      return { missing: acknowledgements.all(after, [...others]) }
    } catch (error) {
      acknowledgements.forget(after)
      onTakenBack(change)
      await upkeep.takeBack(edits)
      throw answerFor(error)
    }
  }
}
