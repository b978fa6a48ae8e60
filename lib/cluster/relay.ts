/**
 * The relay of a worker: the other processes, and the other nodes, are reached by way of the primary.
 */
import { HttpError } from '../http/errors.ts'
import type { Relay } from '../control/relay.ts'
import { awayError } from '../redis/away.ts'
import type { Peer } from './peer.ts'

/** What the primary answers: what was asked for, or why the shared engine does not take changes now. */
type Outcome<Answer> = { readonly done: Answer } | { readonly away: string }

/** Makes the relay of this worker. What it asks for rejects with DisconnectedError when the primary is gone. */
export function createClusterRelay(peer: Peer): Relay {
  async function call<Answer>(name: string, taken?: unknown): Promise<Answer> {
    const outcome = (await peer.call(name, taken)) as Outcome<Answer> // As `outcomeOf` makes it.
    if ('away' in outcome) throw awayError(outcome.away)
    return outcome.done
  }
  return {
    turn: async () => {
      await call<boolean>('control.turn')
      return () => peer.tell('control.end')
    },
    share: (change) => call<readonly string[]>('control.share', change),
    ask: async (command) => void (await peer.call('control.ask', command)),
  }
}

/** Answers a relay. Rejects with what is no matter of the shared engine. */
export async function outcomeOf<Answer>(asked: Promise<Answer>): Promise<Outcome<Answer>> {
  try {
    return { done: await asked }
  } catch (error) {
    if (error instanceof HttpError) return { away: error.message }
    throw error
  }
}
