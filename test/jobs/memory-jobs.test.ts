import { MemoryJobs } from './memory-jobs.ts'
import { describeJobStore, type StoreUnderTest } from './store-conformance.ts'

describeJobStore('the model of a job store', async (_, now) => {
  const under = (store: MemoryJobs): StoreUnderTest => ({ store, crash: async () => under(new MemoryJobs(now, store)) })
  return under(new MemoryJobs(now))
})
