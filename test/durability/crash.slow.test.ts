import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { CrashWorld, type KillKind } from './crash-world.ts'

// `npm run kill -- crash` does the same 200 times.
test('after kill -9 every file is whole, the next start works, and nothing acknowledged is gone', async (t) => {
  const world = new CrashWorld(t, temporaryFolder(), 1)
  const kinds: readonly KillKind[] = ['setup', 'serve', 'passwd', 'serve', 'serve', 'setup']
  for (const kind of [...kinds, ...kinds]) await world.kill(kind)
  await world.close()
  const { kills, answered, unanswered } = world.seen
  assert.equal(kills, 12)
  assert.ok(answered > 50 && unanswered > 20, `${answered} answers and ${unanswered} cut off show too little`)
})
