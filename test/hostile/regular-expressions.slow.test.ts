// The clock of the regular expressions, with texts as long as a hostile client may send.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkTimes, slowest } from './regular-expressions-support.ts'

describe('regular expressions', () => {
  it('are measured well enough to detect a slow one', () => {
    assert.ok(slowest(/^(?:a+)+$/, 26, 100) > 100)
    assert.ok(slowest(/\s+$/, 30_000, 100) > 100)
  })

  it('process 100,000 characters within a second', () => checkTimes([28, 3000, 100_000]))
})
