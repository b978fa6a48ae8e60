import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyMask } from '../../lib/websocket/frame.ts'
import { Seeded } from '../support/seeded.ts'

const lengths = [0, 1, 2, 3, 4, 5, 7, 8, 31, 95, 96, 97, 98, 99, 100, 101, 102, 103, 111, 112, 255, 1000]

test('matches the byte-wise rule for all lengths and alignments, and changes nothing else', () => {
  const random = new Seeded(1)
  for (const length of lengths) {
    for (let from = 0; from < 9; from += 1) {
      const mask = random.bytes(4)
      const before = random.bytes(length + 20)
      const bytes = Buffer.from(before)
      applyMask(bytes, from, from + length, mask.readInt32LE())
      const inside = (at: number): boolean => at >= from && at < from + length
      const expected = before.map((byte, at) => (inside(at) ? byte ^ (mask[(at - from) % 4] as number) : byte))
      assert.deepEqual(bytes, Buffer.from(expected), `${length} bytes from ${from}`)
    }
  }
})
