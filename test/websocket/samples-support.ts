// Checks for seeded messages and large frames: for a sample, and for enough to find rare cases.
import assert from 'node:assert/strict'
import { MessageReader } from '../../lib/websocket/message-reader.ts'
import { Seeded } from '../support/seeded.ts'
import { clientFrame, closing } from './frames.ts'
import { cut, read } from './reading.ts'

/** Reads this many inputs, complete and in pieces. */
export function checkMessages(count: number): void {
  const random = new Seeded(20_240_917)
  const maxMessageBytes = 64
  const ends = new Map<string, number>()
  for (let round = 0; round < count; round += 1) {
    const bytes = randomBytes(random)
    const whole = read([bytes], maxMessageBytes)
    const places = Array.from({ length: random.integer(6) }, () => random.integer(bytes.length + 1))
    places.sort((a, b) => a - b)
    const inPieces = read(cut(bytes, places), maxMessageBytes, (reader) => {
      assert.ok(reader.heldBytes <= maxMessageBytes + 131, `${reader.heldBytes} bytes are held`)
    })
    assert.deepEqual(inPieces, whole, `${bytes.toString('hex')} cut at ${places.join()}`)
    const end = whole.at(-1)?.split(' ', 2) ?? ['nothing']
    const kind = end[0] === 'failed' ? end.join(' ') : (end[0] as string)
    ends.set(kind, (ends.get(kind) ?? 0) + 1)
  }
  for (const kind of ['text', 'binary', '9', 'closed', 'failed 1002', 'failed 1007', 'failed 1009']) {
    assert.ok((ends.get(kind) ?? 0) > count / 1000, `${kind}: ${ends.get(kind) ?? 0}`)
  }
}

/** Reads a frame of this many MiB in pieces as from a socket. */
export function checkLargeFrame(mebibytes: number): void {
  const payload = Buffer.alloc(mebibytes << 20, '0123456789 abcdefghijklmnopqrstuvwxyz')
  for (const opcode of [1, 2]) {
    const bytes = clientFrame({ opcode, payload })
    const reader = new MessageReader(payload.length)
    let got: unknown
    for (let at = 0; at < bytes.length; at += 65_536) {
      assert.equal(got, undefined)
      reader.push(bytes.subarray(at, at + 65_536))
      got = reader.next()
      assert.ok(reader.heldBytes <= payload.length + 14)
    }
    assert.ok(opcode === 1 ? got === payload.toString() : payload.equals(got as Buffer))
    assert.equal(reader.next(), undefined)
    assert.equal(reader.heldBytes, 0)
  }
}

/** Mostly valid frames, with occasional changed bits and a cut end. */
function randomBytes(random: Seeded): Buffer {
  const frames: Buffer[] = []
  let open = false
  for (let count = 1 + random.integer(5); count > 0; count -= 1) {
    const odd = random.integer(12) === 0
    const control = random.integer(4) === 0
    const opcode = odd ? random.integer(16) : control ? random.pick([8, 9, 9, 9, 10]) : open ? 0 : random.pick([1, 2])
    const final = control || random.integer(2) === 0
    if (!control) open = !final
    const payload = opcode === 8 ? closing(random.pick([1000, 1001, 4000, 1006]), 'bye') : randomText(random)
    frames.push(clientFrame({ opcode, final, payload, mask: [...random.bytes(4)] }))
  }
  const bytes = Buffer.concat(frames)
  for (let flips = random.integer(3) === 0 ? 1 + random.integer(3) : 0; flips > 0; flips -= 1) {
    const at = random.integer(bytes.length)
    bytes[at] = (bytes[at] as number) ^ (1 << random.integer(8))
  }
  return random.integer(5) === 0 ? bytes.subarray(0, random.integer(bytes.length)) : bytes
}

function randomText(random: Seeded): Buffer {
  const characters = Array.from({ length: random.integer(12) }, () => random.pick(['a', 'é', '€', '😀', '\u0000']))
  const bytes = Buffer.from(characters.join(''))
  return random.integer(6) === 0 ? bytes.subarray(0, random.integer(bytes.length + 1)) : bytes
}
