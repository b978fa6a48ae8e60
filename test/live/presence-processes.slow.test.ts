import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startSeveral } from '../cluster/several.ts'
import { presenceFiles, runPresence } from './presence-world.ts'

it('members in two processes are known in both, and removed ten seconds after they left', async (t) => {
  const { url } = await startSeveral(t, 2, presenceFiles)
  const { goingMs } = await runPresence(t, [url, url], 300)
  assert.ok(goingMs >= 9900, `${goingMs} ms`)
})
