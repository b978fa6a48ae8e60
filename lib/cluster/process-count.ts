/**
 * How many processes serve, and which of them this is: what the command line must know before it loads the rest.
 */
import { availableParallelism } from 'node:os'
import type { Config } from '../config/table.ts'

/** The environment variable by which a primary tells a worker its number. */
export const numberVariable = 'SVC_PROCESS'

/** What `server.processes` stands for: `auto` is one for each core that this process may use. */
export function processCount(config: Config): number {
  const asked = config['server.processes']
  return asked === 'auto' ? availableParallelism() : asked
}

/** Takes the number of this process, from 1, out of an environment. Undefined: no primary made it. */
export function takeProcessNumber(env: NodeJS.ProcessEnv): number | undefined {
  const number = env[numberVariable]
  delete env[numberVariable]
  return number === undefined ? undefined : Number(number)
}
