import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Makes an empty folder of the test's own, removed when the test ends. Returns its absolute path. */
export function temporaryFolder(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
