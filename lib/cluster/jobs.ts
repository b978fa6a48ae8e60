/**
 * The jobs of a server with several processes, without a shared engine. The primary keeps the store, which it opens
 * when a worker has a job file, and gives back the jobs of a worker that has ended.
 */
import type { Claim, JobCounts, JobStore, ListedJob } from '../jobs/job-store.ts'
import type { Peer } from './peer.ts'
import { remote, serve } from './remote.ts'

/** The functions that the primary serves. */
type Served = Omit<JobStore, 'onDue' | 'close'> & {
  /** Opens the store, and begins to report jobs that are due. */
  open(): Promise<void>
}

/** Opens the store of a worker. Rejects when the primary cannot open it. */
export async function openClusterJobs(peer: Peer): Promise<JobStore> {
  const primary = remote<Served>(peer, 'jobs')
  let whenDue = (): void => {}
  peer.on('jobs.due', () => whenDue())
  await primary.open()
  return {
    enqueue: (job) => primary.enqueue(job),
    claim: (...args): Promise<Claim> => primary.claim(...args),
    settle: (...args) => primary.settle(...args),
    release: (owner) => primary.release(owner),
    plan: (...args) => primary.plan(...args),
    advance: (step) => primary.advance(step),
    counts: (): Promise<readonly JobCounts[]> => primary.counts(),
    list: (query): Promise<readonly ListedJob[]> => primary.list(query),
    retry: (id) => primary.retry(id),
    discard: (id) => primary.discard(id),
    onDue: (listener) => (whenDue = listener),
    close: () => {},
  }
}

/** Makes the primary's side. @param openStore called when a worker needs the store; once, unless it rejects */
export function hostJobs(openStore: () => Promise<JobStore>) {
  let opening: Promise<JobStore> | undefined
  /** The owners of workers that have ended, whose jobs are not given back yet. */
  const gone = new Set<string>()
  /** One for each worker that uses the store. */
  const informs = new Set<() => void>()
  const opened = (): Promise<JobStore> => {
    opening ??= openStore().then((store) => {
      store.onDue(() => {
        for (const inform of informs) inform()
      })
      return store
    }).catch((error: unknown) => {
      opening = undefined // A later reload of a worker tries again.
      throw error
    })
    return opening
  }
  const releaseGone = async (): Promise<void> => {
    try {
      for (const owner of gone) {
        await (await opened()).release(owner)
        gone.delete(owner)
      }
    } catch {
      // The next claim of any worker tries again. Its own write reports a database that fails.
    }
  }
  return {
    /** Serves a worker until its channel closes. Call it once, before the first message of the worker arrives. */
    attach: (peer: Peer): void => {
      const owners = new Set<string>()
      /** Whether the worker knows that a job is due: one message is enough until it claims. */
      let isInformed = false
      const inform = (): void => {
        if (!isInformed) peer.notify('jobs.due')
        isInformed = true
      }
      serve<Served>(peer, 'jobs', {
        open: async () => {
          await opened()
          informs.add(inform)
        },
        enqueue: async (job) => (await opened()).enqueue(job),
        claim: async (owner, names, count) => {
          isInformed = false
          owners.add(owner)
          void releaseGone()
          return (await opened()).claim(owner, names, count)
        },
        settle: async (owner, outcomes) => (await opened()).settle(owner, outcomes),
        release: async (owner) => (await opened()).release(owner),
        plan: async (name, spec, next) => (await opened()).plan(name, spec, next),
        advance: async (step) => (await opened()).advance(step),
        counts: async () => (await opened()).counts(),
        list: async (query) => (await opened()).list(query),
        retry: async (id) => (await opened()).retry(id),
        discard: async (id) => (await opened()).discard(id),
      })
      void peer.closed.then(async () => {
        informs.delete(inform)
        for (const owner of owners) gone.add(owner)
        await releaseGone()
      })
    },
    close: async (): Promise<void> => {
      await (await opening?.catch(() => undefined))?.close() // It may have failed to open.
    },
  }
}
