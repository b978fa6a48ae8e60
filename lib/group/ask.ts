/**
 * Asks several processes the same question at once, and waits for their answers for a limited time.
 *
 * A process that has not answered yet is not asked again; a second call waits for the pending answer. So nothing piles
 * up in front of a process that hangs.
 */
import { endsWithin } from '../base/deadline.ts'
import { DisconnectedError, type Peer } from './peer.ts'

interface AskOptions<Process, Answer> {
  /** The name of the call. */
  readonly name: string
  /** Converts an answer. Called once for each answer, late ones included. */
  readonly take: (process: Process, answered: unknown) => Answer
  /** Called with each answer that is an error, or that `take` rejects. */
  readonly report: (process: Process, error: unknown) => void
  /** How long to wait, in milliseconds. */
  readonly withinMs: number
}

/** Asks the question. Resolves with the answers that came in time; a process whose channel closes has none. */
export type Ask<Process, Answer> = (processes: Iterable<Process>) => Promise<ReadonlyMap<Process, Answer>>

/** Makes a function that asks one question. */
export function createAsk<Process extends { readonly peer: Peer }, Answer>(
  options: AskOptions<Process, Answer>,
): Ask<Process, Answer> {
  const { name, take, report, withinMs } = options
  /** The calls that were not answered in time and are still pending. */
  const late = new WeakMap<Process, Promise<Answer>>()

  async function call(process: Process): Promise<Answer> {
    try {
      return take(process, await process.peer.call(name))
    } finally {
      late.delete(process)
    }
  }

  return async (processes) => {
    const answers = new Map<Process, Answer>()
    const calls = new Map(Array.from(processes, (process) => [process, late.get(process) ?? call(process)]))
    const pending = new Map(calls)

    async function settle([process, called]: readonly [Process, Promise<Answer>]): Promise<void> {
      try {
        answers.set(process, await called)
      } catch (error) {
        if (!(error instanceof DisconnectedError)) report(process, error)
      }
      pending.delete(process)
    }

    await endsWithin(withinMs, Promise.all([...calls].map(settle)))
    for (const [process, called] of pending) late.set(process, called)
    return new Map(answers)
  }
}
