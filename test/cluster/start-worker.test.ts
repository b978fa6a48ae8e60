import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prepareWorkers, startWorker } from '../../lib/cluster/worker-process.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { openLogs } from '../../lib/log/logs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a worker that the system cannot start ends at once with the reason, and its channel is closed', async (t) => {
  const folder = temporaryFolder()
  const logs = openLogs(parseConfig({ 'log.console': false }, folder).config, folder, { keys: ['k'], isLasting: true })
  t.after(() => logs.close())
  prepareWorkers([])
  const { execPath } = process
  t.after(() => (process.execPath = execPath))
  process.execPath = `${folder}/nowhere`
  const worker = startWorker(1, logs, () => {})
  const { status, signal, error } = await worker.ended
  assert.deepEqual([worker.pid, status, signal, (error as NodeJS.ErrnoException).code], [0, null, null, 'ENOENT'])
  await worker.peer.closed
  worker.kill('SIGKILL')
})
