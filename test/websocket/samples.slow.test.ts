import { test } from 'node:test'
import { checkLargeFrame, checkMessages } from './samples-support.ts'

test('reads 100,000 seeded inputs: no other error, memory within the limit, the same for any cuts', () => {
  checkMessages(100_000)
})

test('reads a frame of 16 MiB in the pieces of a socket', () => checkLargeFrame(16))
