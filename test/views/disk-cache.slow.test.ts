import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkChangedBytes, fill } from './disk-cache-support.ts'

test('survives each of 200 single bytes changed at random', () => checkChangedBytes(200))

test('readers get whole entries while several processes write', async () => {
  const { root } = fill()
  const worker = fileURLToPath(new URL('./write-entries.ts', import.meta.url))
  const run = promisify(execFile)
  const workers = [1, 2, 3].map(() => run(process.execPath, [...process.execArgv, worker, root]))
  for (const { stdout } of await Promise.all(workers)) assert.equal(stdout, 'problems: 0, wrong pages: 0\n')
  const leftovers = readdirSync(join(root, '.cached/views/sub')).filter((name) => name.endsWith('.tmp'))
  assert.deepEqual(leftovers, [])
})
