import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { writeFiles } from './application.ts'
import { temporaryFolder } from './temporary-folder.ts'

test('the tests of a room run once all of its files are loaded, so none imports what another mocks', async () => {
  const folder = temporaryFolder()
  writeFiles(folder, {
    'first.mjs': `
      import { it, mock } from 'node:test'
      it('mocks timers', async () => {
        mock.timers.enable({ apis: ['setTimeout'] })
        for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate)
        mock.reset()
      })`,
    'second.mjs': `
      import { it } from 'node:test'
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
      const { setTimeout } = await import('node:timers/promises')
      it('waits', { timeout: 10_000 }, () => setTimeout(1))`,
    'entry.mjs': `
      import { runRoom } from ${JSON.stringify(new URL('room.js', import.meta.url).href)}
      const files = [${JSON.stringify(join(folder, 'first.mjs'))}, ${JSON.stringify(join(folder, 'second.mjs'))}]
      runRoom(files, { noteFile: ${JSON.stringify(join(folder, 'note'))}, timeoutMs: 20_000, roomTimeoutMs: 60_000 })`,
  })
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const run = spawn(process.execPath, [join(folder, 'entry.mjs')], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [output, [status]] = await Promise.all([text(run.stdout), once(run, 'exit')])
  assert.equal(status, 0, output)
  assert.match(output, /waits/)
})
