import type { RestPoolOptions } from '../../lib/core/rest-pool.ts'

/** A REST pool that holds nothing: for servers whose routes never park a reply. */
export const emptyRestPool: RestPoolOptions = { workersSse: 0, workersLongPoll: 0, queueSize: 0, streamTimeoutMs: 0 }
