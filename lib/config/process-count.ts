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

/** What to tell who embeds the server, which has one process: the others are started by the command line. */
export function embeddedWarnings(config: Config): readonly string[] {
  if (processCount(config) === 1) return []
  const asked = `server.processes is ${config['server.processes']}`
  return [`${asked}, and this server is embedded, which has one process: start it with svc, or set it to 1`]
}
