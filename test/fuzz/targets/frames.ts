/** WebSocket frames in pieces, against a slow reader that has all the bytes and follows RFC 6455, section 5, word by word. */
import assert from 'node:assert/strict'
import type { Seeded } from '../../support/seeded.ts'
import { clientFrame, closing } from '../../websocket/frames.ts'
import { read } from '../../websocket/reading.ts'
import { changed, cutAnywhere, pieces } from '../mutate.ts'
import type { Target } from '../target.ts'

const maxMessageBytes = 300
const words = ['a', '\xc3\xa9', '\xf0\x9f\x98\x80', '\xff', '\xed\xa0\x80', 'x'.repeat(60), '\0']

export const frames: Target = {
  name: 'frames',
  share: 120,
  make(seeded) {
    let open = false
    let bytes = ''
    for (let left = 1 + seeded.integer(4); left > 0; left -= 1) {
      const control = seeded.integer(4) === 0
      const opcode = control ? seeded.pick([8, 9, 10]) : open ? 0 : seeded.pick([1, 2])
      const final = control || seeded.integer(3) > 0
      if (!control) open = !final
      bytes += someFrame(seeded, seeded.integer(15) === 0 ? seeded.integer(16) : opcode, final)
    }
    return cutAnywhere(seeded, seeded.integer(3) === 0 ? changed(seeded, bytes, 1 + seeded.integer(3)) : bytes, 6)
  },
  check(chunks) {
    const found = read(chunks.map((chunk) => Buffer.from(chunk, 'latin1')), maxMessageBytes)
    assert.deepEqual(found, slowRead(Buffer.from(chunks.join(''), 'latin1')))
  },
}

function someFrame(seeded: Seeded, opcode: number, final: boolean): string {
  const code = seeded.pick([1000, 1001, 1004, 1005, 1006, 1015, 2999, 3000, 4999, 5000])
  const text = Buffer.from(pieces(seeded, words, seeded.pick([1, 3, 5])), 'latin1')
  const payload = opcode === 8 && seeded.integer(3) > 0 ? closing(code, text) : text
  return clientFrame({ opcode, final, payload, mask: [...seeded.bytes(4)] }).toString('latin1')
}

/** What `read` must say, as texts. */
function slowRead(bytes: Buffer): string[] {
  const events: string[] = []
  let message: { readonly opcode: number; data: Buffer } | undefined
  let at = 0
  for (;;) {
    if (bytes.length - at < 2) return events
    const [first = 0, second = 0] = bytes.subarray(at)
    const opcode = first % 16
    const isControl = opcode >= 8
    const isFinal = first >= 128
    const isReserved = Math.floor(first / 16) % 8 !== 0
    const isUnknown = ![0, 1, 2, 8, 9, 10].includes(opcode)
    const short = second % 128
    if (isReserved || isUnknown || second < 128 || (isControl && (!isFinal || short > 125))) return [...events, 'failed 1002']
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    const start = at + 2 + lengthBytes + 4
    if (bytes.length < start) return events
    let length = lengthBytes === 0 ? BigInt(short) : 0n
    for (const byte of bytes.subarray(at + 2, at + 2 + lengthBytes)) length = length * 256n + BigInt(byte)
    const isLong = length < (lengthBytes === 2 ? 126n : lengthBytes === 8 ? 65_536n : 0n)
    if (isLong || length >= 2n ** 63n) return [...events, 'failed 1002']
    const mask = bytes.subarray(start - 4, start)
    const payload = bytes.subarray(start).subarray(0, Number(length < 1000n ? length : 1000n)).map((byte, place) => byte ^ (mask[place % 4] as number))
    const isWhole = BigInt(bytes.length - start) >= length
    if (isControl) {
      if (!isWhole) return events
      events.push(`${opcode} ${Buffer.from(payload).toString('hex')}`)
      if (opcode === 8) return [...events, slowClose(Buffer.from(payload))]
    } else {
      if ((opcode === 0) === (message === undefined)) return [...events, 'failed 1002']
      message ??= { opcode, data: Buffer.alloc(0) }
      if (BigInt(message.data.length) + length > BigInt(maxMessageBytes)) return [...events, 'failed 1009']
      message.data = Buffer.concat([message.data, payload])
      if (!isWhole) return events
      if (isFinal) {
        if (message.opcode === 1 && !isText(message.data)) return [...events, 'failed 1007']
        events.push(message.opcode === 1 ? `text ${message.data.toString()}` : `binary ${message.data.toString('hex')}`)
        message = undefined
      }
    }
    at = start + Number(length)
  }
}

function slowClose(payload: Buffer): string {
  if (payload.length === 0) return 'closed 1005'
  if (payload.length === 1) return 'failed 1002'
  const code = payload.readUInt16BE()
  const mayBeSent = /^(1000|1001|1002|1003|1007|1008|1009|101[0-4]|[34]\d\d\d)$/.test(String(code))
  if (!mayBeSent) return 'failed 1002'
  return isText(payload.subarray(2)) ? `closed ${code}` : 'failed 1007'
}

function isText(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
