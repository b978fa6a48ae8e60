// A fault that no longer fits the code is never tried, so nobody would notice that nothing catches it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { root } from '../support/launch.ts'
import { mutants } from './mutants.ts'

describe('the faults to try', () => {
  it('each replace a text that its file holds once', () => {
    const missing = mutants.filter(({ file, find }) => readFileSync(join(root, 'lib', file), 'utf8').split(find).length !== 2)
    assert.deepEqual(missing.map(({ file, breaks }) => `lib/${file}: ${breaks}`), [])
  })
})
