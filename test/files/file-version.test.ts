// When a file that looks unchanged can be trusted to be.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSettled } from '../../lib/files/file-version.ts'

test('a file settles after a step of its time stamps: two seconds where they are whole, else a tenth', () => {
  const rows = [[5000, 6999, false], [5000, 7001, true], [5000.25, 5099, false], [5000.25, 5101, true], [5001, 5102, true]] as const
  for (const [ctimeMs, nowMs, isTrusted] of rows) assert.equal(isSettled({ ctimeMs }, nowMs), isTrusted, `${ctimeMs} ${nowMs}`)
})
