import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MessageReader } from '../../lib/websocket/message-reader.ts'
import { clientFrame, closing, type FrameFields } from './frames.ts'
import { cut, read } from './reading.ts'
import { checkLargeFrame, checkMessages } from './samples-support.ts'

const limit = 100_000
const bad = Buffer.from([0xff])

function bytesOf(frames: readonly FrameFields[]): Buffer {
  return Buffer.concat(frames.map(clientFrame))
}

for (const length of [0, 1, 125, 126, 127, 128, 65_535, 65_536]) {
  for (const mask of [[0, 0, 0, 0], [1, 2, 3, 4], [255, 254, 253, 252]]) {
    test(`reads messages of ${length} bytes with the mask ${mask.join('.')}, complete and in pieces`, () => {
      const payload = Buffer.alloc(length, 'Grüße, ')
      if (length === 0 || payload.toString().includes('\ufffd')) payload.fill('x')
      const bytes = bytesOf([{ opcode: 2, payload, mask }, { opcode: 1, payload, mask }])
      const expected = [`binary ${payload.toString('hex')}`, `text ${payload.toString()}`]
      assert.deepEqual(read([bytes], limit), expected)
      for (const place of [1, 2, 5, 6, 7, 8, 9, 13, 14, 15, 70, length, length + 8, length + 15]) {
        assert.deepEqual(read(cut(bytes, [Math.min(place, bytes.length)]), limit), expected, `cut at ${place}`)
      }
    })
  }
}

const sequences: readonly (readonly [string, readonly FrameFields[], readonly string[]])[] = [
  ['two fragments', [{ opcode: 1, payload: 'Hel', final: false }, { opcode: 0, payload: 'lo' }], ['text Hello']],
  [
    'fragments with control frames between them',
    [
      { opcode: 2, payload: 'a', final: false },
      { opcode: 9, payload: 'p' },
      { opcode: 0, payload: 'b', final: false },
      { opcode: 10 },
      { opcode: 0, payload: 'c' },
      { opcode: 1, payload: 'next' },
    ],
    ['9 70', '10 ', 'binary 616263', 'text next'],
  ],
  [
    'empty fragments',
    [{ opcode: 1, final: false }, { opcode: 0, final: false }, { opcode: 0, payload: 'x' }],
    ['text x'],
  ],
  ['an empty message in fragments', [{ opcode: 1, final: false }, { opcode: 0 }], ['text ']],
  [
    'a character in two fragments',
    [
      { opcode: 1, payload: Buffer.from('f09f', 'hex'), final: false },
      { opcode: 0, payload: Buffer.from('9880', 'hex') },
    ],
    ['text 😀'],
  ],
  ['a byte order mark', [{ opcode: 1, payload: '\ufeffx' }], ['text \ufeffx']],
  [
    'a close frame, and nothing behind it',
    [{ opcode: 8, payload: closing(1000, 'bye') }, { opcode: 1, payload: 'late' }],
    ['8 03e8627965', 'closed 1000'],
  ],
  ['a close frame without a code', [{ opcode: 8 }], ['8 ', 'closed 1005']],
  ['a continuation of nothing', [{ opcode: 0, payload: 'x' }], ['failed 1002']],
  ['a continuation behind a message', [{ opcode: 1, payload: 'a' }, { opcode: 0 }], ['text a', 'failed 1002']],
  ['a message within another', [{ opcode: 1, final: false }, { opcode: 1, payload: 'b' }], ['failed 1002']],
  ['a binary one within a text', [{ opcode: 1, final: false }, { opcode: 2, final: false }], ['failed 1002']],
  [
    'a frame that is not masked',
    [{ opcode: 1, payload: 'a' }, { opcode: 1, payload: 'b', mask: undefined }],
    ['text a', 'failed 1002'],
  ],
  ['a text that is not UTF-8', [{ opcode: 1, payload: bad }], ['failed 1007']],
  ['a text that ends within a character', [{ opcode: 1, payload: Buffer.from([0xe2, 0x82]) }], ['failed 1007']],
  [
    'fragments that end within a character',
    [{ opcode: 1, payload: 'a', final: false }, { opcode: 0, payload: Buffer.from([0xc3]) }],
    ['failed 1007'],
  ],
  ['a bad first fragment', [{ opcode: 1, payload: bad, final: false }, { opcode: 0 }], ['failed 1007']],
  ['binary that is not UTF-8', [{ opcode: 2, payload: bad }], ['binary ff']],
  ['a message at the limit', [{ opcode: 2, payload: 'x'.repeat(10) }], [`binary ${'78'.repeat(10)}`]],
  ['a message past the limit', [{ opcode: 2, payload: 'x'.repeat(11) }], ['failed 1009']],
  [
    'fragments past the limit',
    [{ opcode: 2, payload: '123456', final: false }, { opcode: 0, payload: '12345' }],
    ['failed 1009'],
  ],
  ['control frames past the limit of messages', [{ opcode: 9, payload: 'x'.repeat(125) }], [`9 ${'78'.repeat(125)}`]],
]

for (const [what, frames, expected] of sequences) {
  test(`reads ${what} in any three pieces`, () => {
    const bytes = bytesOf(frames)
    for (let first = 0; first <= bytes.length; first += 1) {
      for (let second = first; second <= bytes.length; second += 1) {
        assert.deepEqual(read(cut(bytes, [first, second]), 10), expected, `cut at ${first} and ${second}`)
      }
    }
    assert.deepEqual(read(cut(bytes, [...bytes.keys()].slice(1)), 10), expected, 'byte by byte')
  })
}

test('refuses a message past the limit by its header', () => {
  for (const length of [11, 126, 65_536, 2 ** 40, 2n ** 62n]) {
    const header = clientFrame({ opcode: 2, length: BigInt(length) })
    assert.deepEqual(read([header], 10), ['failed 1009'], String(length))
  }
})

test('grows with received bytes, not with the announced length', () => {
  const maxMessageBytes = 16 << 20
  const reader = new MessageReader(maxMessageBytes)
  reader.push(clientFrame({ opcode: 2, length: maxMessageBytes }))
  assert.equal(reader.next(), undefined)
  assert.ok(reader.heldBytes < 100)
  reader.push(Buffer.alloc(1000))
  assert.equal(reader.next(), undefined)
  assert.ok(reader.heldBytes <= 2 * 1014)
  reader.clear()
  assert.equal(reader.heldBytes, 0)
})

test('reads a frame of 2 MiB in the pieces of a socket', () => checkLargeFrame(2))

test('reads a message of a hundred thousand fragments in linear time', () => {
  const frames = Buffer.concat([
    clientFrame({ opcode: 1, payload: 'x', final: false }),
    ...Array.from({ length: 99_998 }, () => clientFrame({ opcode: 0, payload: 'x', final: false })),
    clientFrame({ opcode: 0, payload: 'x' }),
  ])
  assert.deepEqual(read([frames], limit), [`text ${'x'.repeat(100_000)}`])
})

test('returns a long binary message without a copy, and a short one without the rest of its chunk', () => {
  const frames = ['short', Buffer.alloc(5000, 'a')].map((payload) => clientFrame({ opcode: 2, payload }))
  const chunk = Buffer.alloc(5019) // Of its own, not a part of a pool that others share.
  Buffer.concat(frames).copy(chunk)
  const reader = new MessageReader(limit)
  reader.push(chunk)
  const [short, long] = [reader.next() as Buffer, reader.next() as Buffer]
  assert.equal(short.toString(), 'short')
  assert.equal(short.buffer === chunk.buffer, false)
  assert.ok(long.equals(Buffer.alloc(5000, 'a')))
  assert.equal(long.buffer === chunk.buffer, true)
})

test('reads 4000 seeded inputs: no other error, memory within the limit, the same for any cuts', () => {
  checkMessages(4000)
})
