/** Detects whether another program runs this server as one of several processes, as `pm2 -i 2` does. */
import type { Cluster } from 'node:cluster'

/** The warning about it. */
export const foreignCluster =
  'another program (pm2 -i?) runs this server as a worker of node:cluster: each such process is a server of its own, '
  + 'with its own sessions, events, limits and panel; let it run one process, and set server.processes'

/** The problem that prevents such a worker from starting several processes. */
export const severalInCluster =
  'server.processes must be 1 in a worker of node:cluster: let the other program (pm2 -i?) run one process, not as a '
  + 'worker (pm2: exec_mode fork)'

/**
 * Returns how many processes of this server another program runs as workers of `node:cluster`: 0 when this process is
 * not a worker, Infinity when the number is unknown.
 * @param env pm2 sets the number in `instances`
 */
export function foreignWorkers(env: NodeJS.ProcessEnv): number {
  if (process.send === undefined) return 0 // A worker has a channel.
  const cluster = process.getBuiltinModule('node:cluster') as unknown as Cluster // getBuiltinModule has no type for it.
  if (!cluster.isWorker) return 0
  return env['instances'] === '1' ? 1 : Infinity
}
