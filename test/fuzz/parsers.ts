/**
 * Runs the targets of `targets.ts` in a process of their own, so that an input that hangs or ends the process is noticed:
 * the process says twice a second where it is.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** So many inputs of a target, from the given place on. */
export interface Share {
  readonly name: string
  readonly from: number
  readonly count: number
}

/** What became of a target. */
export interface Result {
  readonly name: string
  readonly inputs: number
  readonly seconds: number
}

/** What the process is told to do. */
export interface Job {
  readonly seed: number
  readonly shares: readonly Share[]
}

/** What the process says: where it is, what is done, or what failed. */
export type Message = { readonly at: string } | { readonly result: Result } | { readonly failure: string }

/** How long nothing may be heard of the process, in milliseconds. */
const silenceMs = 20_000

/**
 * Runs the shares one after the other.
 * @throws Error with the seed, the smallest input that was found to fail and why, or about where the process hung or ended
 */
export async function fuzzParsers(job: Job, done: (result: Result) => void): Promise<void> {
  const child = fork(fileURLToPath(new URL('./child.ts', import.meta.url)), [JSON.stringify(job)])
  let at = 'the start'
  let failure: string | undefined
  const giveUp = (): void => {
    failure ??= `no sign for ${silenceMs / 1000} seconds, soon after ${at}`
    child.kill('SIGKILL')
  }
  let silence = setTimeout(giveUp, silenceMs)
  child.on('message', (message: Message) => {
    clearTimeout(silence)
    silence = setTimeout(giveUp, silenceMs)
    if ('at' in message) at = message.at
    else if ('failure' in message) failure ??= message.failure
    else done(message.result)
  })
  const [status, signal] = (await once(child, 'close')) as [number | null, string | null]
  clearTimeout(silence)
  if (failure !== undefined) throw new Error(failure)
  if (status !== 0) throw new Error(`The process ended with ${status ?? signal}, soon after ${at}`)
}
