/**
 * Asks several processes the same at once, and waits for their answers no longer than a given time.
 *
 * Surprise: who has not answered in time is not asked again before he has; asking him means waiting for that answer. So
 * nothing piles up before a process that hangs.
 */
import { endsWithin } from '../base/deadline.ts'
import { DisconnectedError, type Peer } from './peer.ts'

export interface AskOptions<Process, Answer> {
  /** What the processes are called for. */
  readonly name: string
  /** Makes an answer of what came back. Called once for each answer, also for those that come too late. */
  readonly take: (process: Process, answered: unknown) => Answer
  /** Told of an answer that was an error, or that could not be taken. */
  readonly report: (process: Process, error: unknown) => void
  /** In milliseconds. */
  readonly withinMs: number
}

/** Asks one thing, again and again. Resolves with the answers that came in time; a channel that closes gives none. */
export type Ask<Process, Answer> = (processes: Iterable<Process>) => Promise<ReadonlyMap<Process, Answer>>

/** Makes a question. */
export function createAsk<Process extends { readonly peer: Peer }, Answer>(
  options: AskOptions<Process, Answer>,
): Ask<Process, Answer> {
  const { name, take, report, withinMs } = options
  /** The calls that were not answered in time. */
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
