/**
 * Surprise: a test's own ending (`t.after`) comes too early to remove its folder, since what is stopped after it may
 * still write there. The folders go with the process, which runs the tests of a room.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folders: string[] = []
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Makes an empty folder of the test's own. Returns its absolute path. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  folders.push(folder)
  return folder
}
