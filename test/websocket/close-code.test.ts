import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closePayload, isWireCode, ProtocolError, readClosePayload } from '../../lib/websocket/close-code.ts'
import { closing } from './frames.ts'

const allowed = [[1000, 1003], [1007, 1014], [3000, 4999]] as const

test('allows only the codes of RFC 6455 and of the registry', () => {
  for (let code = 0; code < 65_536; code += 1) {
    const expected = allowed.some(([first, last]) => code >= first && code <= last)
    if (isWireCode(code) !== expected) assert.fail(`${code} is ${expected ? 'refused' : 'allowed'}`)
  }
})

test('reads only allowed codes: all below 5100, and every hundredth', () => {
  for (let code = 0; code < 65_536; code += code < 5100 ? 1 : 100) {
    if (isWireCode(code)) assert.deepEqual(readClosePayload(closing(code, 'r')), { code, reason: 'r' })
    else assert.throws(() => readClosePayload(closing(code)), { name: 'ProtocolError', code: 1002 })
  }
})

test('writes code and reason', () => {
  assert.deepEqual(closePayload(1000, ''), Buffer.from([3, 232]))
  assert.deepEqual(closePayload(4999, 'schön'), closing(4999, 'schön'))
  assert.equal(closePayload(1001, 'ä'.repeat(61)).length, 124)
})

for (const code of [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 1000.5, Number.NaN, -1]) {
  test(`does not send the code ${code}`, () => {
    assert.throws(() => closePayload(code, ''), new RegExp(`^RangeError: .*it is ${code}$`))
  })
}

test('does not send a reason of more than 123 bytes', () => {
  assert.equal(closePayload(1000, 'x'.repeat(123)).length, 125)
  assert.throws(() => closePayload(1000, 'x'.repeat(124)), /^RangeError: .*it has 124$/)
  assert.throws(() => closePayload(1000, 'ä'.repeat(62)), /^RangeError: .*it has 124$/)
})

test('reads an empty payload as 1005', () => {
  assert.deepEqual(readClosePayload(Buffer.alloc(0)), { code: 1005, reason: '' })
})

test('refuses a payload of one byte with 1002 and a reason that is not UTF-8 with 1007', () => {
  assert.throws(() => readClosePayload(Buffer.from([3])), { code: 1002 })
  assert.throws(() => readClosePayload(closing(1000, Buffer.from([0xff]))), { code: 1007 })
  assert.throws(() => readClosePayload(closing(1000, Buffer.from([0xe2, 0x82]))), { code: 1007 })
})

test('every message fits into a Close frame', () => {
  for (const payload of [Buffer.from([3]), closing(65_535), closing(1000, Buffer.from([0xff]))]) {
    assert.throws(
      () => readClosePayload(payload),
      (error) => error instanceof ProtocolError && closePayload(error.code, error.message).length <= 125,
    )
  }
})
