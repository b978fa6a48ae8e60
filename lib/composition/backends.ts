/** Where several processes of one server keep sessions, events and limits. */
import type { Broker } from '../events/broker.ts'
import type { JobStore } from '../jobs/job-store.ts'
import type { LimitGroupOptions } from '../protection/limit-rule.ts'
import type { SessionGroupOptions } from '../session/group.ts'

/** The backends that processes share. An absent one is local to this process. */
export interface Backends
  extends Partial<Pick<SessionGroupOptions, 'openStoreHere' | 'openSharedStore'>>,
    Pick<LimitGroupOptions, 'openBuckets'> {
  /** Holds the events of channels and queues. */
  readonly broker?: Broker
  /** Holds the events of durable channels and queues. */
  readonly durableBroker?: Broker
  /** Opens the job store, when the first job file is used. @param now milliseconds since 1970 */
  readonly openJobStore?: (now: () => number) => Promise<JobStore>
}
