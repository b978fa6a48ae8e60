import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openJobs } from '../../lib/data/sqlite-jobs.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { StoreUnderTest } from '../jobs/store-conformance.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Opens a store in SQLite, which is closed when the test ends. A crash leaves a copy of its files as they are then. */
export async function openTestJobs(t: TestContext, now: () => number, folder = temporaryFolder()): Promise<StoreUnderTest> {
  const store = await openJobs({ folder, sync: 'normal', log: silentLogger }, now)
  t.after(() => store.close())
  const crash = (): Promise<StoreUnderTest> => {
    const copy = temporaryFolder()
    const files = ['svc.db', 'svc.db-wal'].map((name) => join(folder, name)).filter((path) => existsSync(path))
    // By another process: one that closes the files by `node:fs` frees the locks of SQLite.
    execFileSync('cp', [...files, copy])
    return openTestJobs(t, now, copy)
  }
  return { store, crash }
}
