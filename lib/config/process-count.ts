/**
 * How many processes serve.
 */
import { availableParallelism } from 'node:os'
import type { Config } from './table.ts'

/** What `server.processes` stands for: `auto` is one for each core that this process may use. */
export function processCount(config: Config): number {
  const asked = config['server.processes']
  return asked === 'auto' ? availableParallelism() : asked
}
