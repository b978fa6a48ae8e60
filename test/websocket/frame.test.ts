import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FrameHeader, headerSize, opcodes, readHeader, writeHeader } from '../../lib/websocket/frame.ts'
import { clientFrame, takeFrame, type FrameFields } from './frames.ts'

const lengths = [0, 1, 125, 126, 127, 128, 255, 256, 65_535, 65_536, 65_537]

for (const length of lengths) {
  for (const opcode of [opcodes.text, opcodes.binary]) {
    test(`writes a frame of opcode ${opcode} with ${length} bytes in the shortest form`, () => {
      const payload = Buffer.alloc(length, 'abc')
      const header = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
      assert.equal(headerSize(length), header.length)
      assert.equal(writeHeader(header, 0, opcode, length), header.length)
      const bytes = Buffer.concat([header, payload])
      assert.deepEqual(takeFrame(bytes), { frame: { final: true, opcode, payload }, rest: Buffer.alloc(0) })
    })
  }
}

for (const length of lengths) {
  test(`reads the header of a client's frame with ${length} bytes once it is complete`, () => {
    const bytes = clientFrame({ opcode: 2, payload: Buffer.alloc(length), final: length % 2 === 0 })
    const header = new FrameHeader()
    const size = bytes.length - length
    for (let end = 0; end < size; end += 1) assert.equal(readHeader(bytes.subarray(0, end), 0, header), false)
    const moved = Buffer.concat([Buffer.from('xyz'), bytes])
    assert.equal(readHeader(moved, 3, header), true)
    const { final, opcode, length: read, size: readSize, key } = header
    assert.deepEqual(
      { final, opcode, read, readSize, key },
      { final: length % 2 === 0, opcode: 2, read: length, readSize: size, key: 0x3d21fa37 },
    )
  })
}

test('reads a length of 2^53 - 1, and a greater one as Infinity', () => {
  const header = new FrameHeader()
  assert.ok(readHeader(clientFrame({ opcode: 2, length: 2n ** 53n - 1n }), 0, header))
  assert.equal(header.length, Number.MAX_SAFE_INTEGER)
  for (const length of [2n ** 53n, 2n ** 63n - 1n]) {
    assert.ok(readHeader(clientFrame({ opcode: 2, length }), 0, header))
    assert.equal(header.length, Number.POSITIVE_INFINITY)
  }
})

const violations: readonly (readonly [string, FrameFields, RegExp])[] = [
  ...[1, 2, 4, 7].map((reserved) => [`reserved bits ${reserved}`, { opcode: 1, reserved }, /reserved/] as const),
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map((opcode) => [`opcode ${opcode}`, { opcode }, /not known/] as const),
  ...[0, 1, 2, 8, 9, 10].map(
    (opcode) => [`opcode ${opcode} unmasked`, { opcode, mask: undefined }, /not masked/] as const,
  ),
  ...[8, 9, 10].flatMap((opcode) => [
    [`control frame ${opcode} in fragments`, { opcode, final: false }, /fragmented/] as const,
    [`control frame ${opcode} of 126 bytes`, { opcode, payload: Buffer.alloc(126) }, /too long/] as const,
    [`control frame ${opcode} of 65536 bytes`, { opcode, payload: Buffer.alloc(65_536) }, /too long/] as const,
    [`control frame ${opcode} in a long form`, { opcode, lengthBytes: 2 }, /too long/] as const,
  ]),
  ...[0, 1, 125].map(
    (length) => [`length ${length} in 2 bytes`, { opcode: 2, length, lengthBytes: 2 }, /shortest/] as const,
  ),
  ...[0, 125, 126, 65_535].map(
    (length) => [`length ${length} in 8 bytes`, { opcode: 2, length, lengthBytes: 8 }, /shortest/] as const,
  ),
  ['length 2^63', { opcode: 2, length: 2n ** 63n }, /63 bits/],
  ['length 2^64 - 1', { opcode: 2, length: 2n ** 64n - 1n }, /63 bits/],
]

for (const [what, fields, message] of violations) {
  test(`refuses ${what} with 1002`, () => {
    assert.throws(() => readHeader(clientFrame(fields), 0, new FrameHeader()), { code: 1002, message })
  })
}

test('refuses invalid first bytes before the rest arrives', () => {
  for (const [what, fields] of violations.slice(0, 23)) {
    assert.throws(() => readHeader(clientFrame(fields).subarray(0, 2), 0, new FrameHeader()), { code: 1002 }, what)
  }
})
