/** A request server of a test: whatever the test does not give is as in a server with nothing configured. */
import { RequestServer, type ServerParts } from '../../lib/core/server.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { RunningRequests } from '../../lib/process/running-requests.ts'
import { emptyRestPool } from './rest-pool.ts'

/** Makes it. */
export function makeRequestServer(
  parts: Pick<ServerParts, 'registry' | 'ContextClass'> & Partial<ServerParts>,
): RequestServer {
  return new RequestServer({
    pool: { workers: 10, queueSize: 10 },
    restPool: emptyRestPool,
    checkHost: () => {},
    staticFiles: undefined,
    accessLog: undefined,
    metrics: { record: () => {} },
    log: () => silentLogger,
    running: new RunningRequests(),
    showsDetails: () => false,
    ...parts,
  })
}
