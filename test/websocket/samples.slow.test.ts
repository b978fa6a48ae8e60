import { test } from 'node:test'
import { checkLargeFrame, checkMessages } from './samples-support.ts'

test('takes 100,000 seeded inputs: no other error, no more memory than the limit, the same however cut', () => {
  checkMessages(100_000)
})

test('reads a frame of 16 MiB in the pieces of a socket', () => checkLargeFrame(16))
