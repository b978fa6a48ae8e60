import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { Database } from '../../lib/data/database.ts'
import { openJobs } from '../../lib/data/sqlite-jobs.ts'
import type { JobStore } from '../../lib/jobs/job-store.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { StoreUnderTest } from '../jobs/store-conformance.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** Opens the database of a folder and its job store, which are closed when the test ends. */
export async function openFolder(
  t: TestContext,
  now: () => number = Date.now,
  folder = temporaryFolder(),
): Promise<{ store: JobStore; database: Database }> {
  const database = Database.open({ folder, sync: 'normal', log: silentLogger })
  t.after(() => database.close())
  const store = await openJobs(database, silentLogger, now)
  t.after(() => store.close())
  return { store, database }
}

/** Opens a store in SQLite, which is closed when the test ends. A crash leaves a copy of its files as they are then. */
export async function openTestJobs(t: TestContext, now: () => number, folder = temporaryFolder()): Promise<StoreUnderTest> {
  const { store } = await openFolder(t, now, folder)
  const crash = (): Promise<StoreUnderTest> => {
    const copy = temporaryFolder()
    const files = ['svc.db', 'svc.db-wal'].map((name) => join(folder, name)).filter((path) => existsSync(path))
    // By another process: one that closes the files by `node:fs` frees the locks of SQLite.
    execFileSync('cp', [...files, copy])
    return openTestJobs(t, now, copy)
  }
  return { store, crash }
}
