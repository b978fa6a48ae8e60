import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { Jobs } from '../../lib/jobs/jobs.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { MemoryJobs } from './memory-jobs.ts'

describe('the jobs of a process', () => {
  it('open their store again at the next reload after it could not be opened', async () => {
    const root = temporaryFolder()
    mkdirSync(join(root, 'jobs'))
    writeFileSync(join(root, 'jobs/a.json'), '[{"name": "a", "action": "a.js"}]')
    let opened = 0
    const jobs = new Jobs({
      folder: join(root, 'jobs'),
      root,
      modules: { load: () => assert.fail('there is no module') },
      log: () => silentLogger,
      workers: 1,
      openStore: async () => {
        opened += 1
        if (opened === 1) throw new Error('the disk is full')
        return new MemoryJobs(() => 0)
      },
      shared: () => assert.fail('nothing runs'),
      now: () => 0,
    })
    await assert.rejects(async () => (await jobs.prepare()).open(), /the disk is full/)
    await jobs.close()
    const prepared = await jobs.prepare()
    await prepared.open()
    prepared.use()
    assert.equal(await jobs.enqueue('a'), '1')
    assert.equal(opened, 2)
  })
})
