/** The argument of a job's action. */
import type { JobContext } from 'svc'
import { authorLogger } from '../log/feature.ts'
import type { ModuleLogger } from '../log/logger.ts'
import type { ClaimedJob } from './job-store.ts'

/** The members that all jobs of a server share. */
export type SharedMembers = Pick<JobContext, 'settings' | 'channel' | 'queue' | 'enqueue' | 'url'>

/**
 * Makes the context of one try.
 * @param log the log of module `app`
 */
export function createJobContext(job: ClaimedJob, signal: AbortSignal, log: ModuleLogger, shared: SharedMembers) {
  const { id, name, attempt, data } = job
  return {
    id,
    attempt,
    data: data === null ? undefined : (JSON.parse(data) as unknown),
    signal,
    log: authorLogger(withJob(log, `${name} ${id}`)),
    ...shared,
  }
}

/** Adds the job to each line as a field. */
function withJob(log: ModuleLogger, job: string): ModuleLogger {
  const adding = (write: ModuleLogger['info']): ModuleLogger['info'] => {
    return (message, details) => write(message, { ...details, fields: { job, ...details?.fields } })
  }
  return Object.assign(adding(log.info), {
    debug: adding(log.debug),
    info: adding(log.info),
    warn: adding(log.warn),
    error: adding(log.error),
    fatal: adding(log.fatal),
    get debugEnabled() {
      return log.debugEnabled
    },
  })
}
