/**
 * The state in the shared engine: read, changed by whoever has the turn, put back where the engine has lost it.
 */
import type { Redis } from '../redis/client.ts'
import { integerIn, listIn, textIn, type Reply } from '../redis/reply.ts'
import { textOf, type RecordedMessage } from './messages.ts'
import { positionIn, type Position } from './position.ts'
import { liveIds } from './registry.ts'
import type { NodeKeys, NodeScripts } from './scripts.ts'
import type { Edits, State } from './state.ts'

export interface SharedStateOptions {
  readonly redis: Redis
  readonly keys: NodeKeys
  readonly scripts: NodeScripts
}

/** The state, and where it stands. */
export interface FoundState {
  readonly state: State
  readonly position: Position
}

/** What became of a record: the ids of the nodes that are there; or why it was not made. */
export type RecordOutcome = { readonly ids: readonly string[] } | 'lost' | 'behind'

/** Fields that are the position's. */
const positionFields = ['seq', 'stamp'] as const

/** Every function rejects as the client does. */
export class SharedState {
  readonly #options: SharedStateOptions

  constructor(options: SharedStateOptions) {
    this.#options = options
  }

  /** Reads all of it. */
  async read(): Promise<FoundState> {
    const { redis, keys } = this.#options
    const reply = listIn(await redis.command('HGETALL', keys.state))
    const fields = new Map<string, Reply>()
    for (let at = 0; at < reply.length; at += 2) fields.set(textIn(reply[at]), reply[at + 1] ?? null)
    const position = positionIn(fields.get('seq'), fields.get('stamp') ?? null)
    for (const field of positionFields) fields.delete(field)
    return { state: new Map([...fields].map(([field, text]) => [field, textIn(text)])), position }
  }

  /**
   * Records a change and tells all nodes of it, where the turn is still had and the state is where the change began.
   * @param token that of the turn
   * @param before where the state stood
   */
  async record(token: string, before: Position, edits: Edits, message: RecordedMessage): Promise<RecordOutcome> {
    const { keys, scripts } = this.#options
    const { after } = message
    const set = [...textsOf(after), ...edits.set.flat()]
    const reply = listIn(
      await scripts.record.run(
        [keys.state, keys.lock, keys.seen],
        ...[token, before.seq, before.stamp, keys.channel, textOf(message)],
        ...[set.length, ...set, ...edits.removed],
      ),
    )
    const outcome = textIn(reply[0])
    return outcome === 'lost' || outcome === 'behind' ? outcome : { ids: liveIds(reply[1]) }
  }

  /**
   * Puts a state back, where the engine has an older one or none.
   * @returns whether it was put there
   */
  async putBack({ state, position }: FoundState): Promise<boolean> {
    const { keys, scripts } = this.#options
    const set = [...textsOf(position), ...[...state].flat()]
    const look = textOf({ kind: 'look' })
    return integerIn(await scripts.putBack.run([keys.state], position.seq, keys.channel, look, set.length, ...set)) === 1
  }
}

function textsOf({ seq, stamp }: Position): string[] {
  return ['seq', String(seq), 'stamp', stamp]
}
