/**
 * Surprise: `t.after` is too early to remove a test's folder, since parts that are stopped later may still write there.
 * The folders are removed at the end of the process, which runs the tests of a room.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folders: string[] = []
process.on('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Makes an empty folder for a test. Returns its absolute path. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-test-'))
  folders.push(folder)
  return folder
}
