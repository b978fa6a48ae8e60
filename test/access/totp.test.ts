import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTotpSecret, codeOf, makeTotpSecret, otpauthAddress, stepOf, toBase32 } from '../../lib/access/totp.ts'

/** The secret of the test vectors in RFC 4226, appendix D, and RFC 6238, appendix B. */
const secret = toBase32(Buffer.from('12345678901234567890'))

test('encodes base32 as in RFC 4648, section 10, without padding', () => {
  for (const [text, encoded] of [
    ['', ''],
    ['f', 'MY'],
    ['fo', 'MZXQ'],
    ['foo', 'MZXW6'],
    ['foob', 'MZXW6YQ'],
    ['fooba', 'MZXW6YTB'],
    ['foobar', 'MZXW6YTBOI'],
  ] as const) {
    assert.equal(toBase32(Buffer.from(text)), encoded)
  }
  assert.equal(secret, 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ')
})

test('makes the codes of RFC 4226, appendix D', () => {
  const codes = Array.from({ length: 10 }, (_, step) => codeOf(secret, step))
  assert.deepEqual(codes, [
    '755224', '287082', '359152', '969429', '338314', '254676', '287922', '162583', '399871', '520489',
  ])
})

test('makes the codes of RFC 6238, appendix B, of six digits instead of eight', () => {
  for (const [seconds, code] of [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ] as const) {
    assert.equal(codeOf(secret, Math.floor(seconds / 30)), code.slice(-6))
    assert.equal(stepOf(secret, code.slice(-6), seconds * 1000), Math.floor(seconds / 30))
  }
})

test('accepts the codes of this step and of one step before and after', () => {
  const step = 40_000_000
  for (const [name, of, atMs, isAccepted] of [
    ['this step, at its beginning', step, step * 30_000, true],
    ['this step, at its end', step, step * 30_000 + 29_999, true],
    ['the step before', step - 1, step * 30_000, true],
    ['the step after', step + 1, step * 30_000 + 29_999, true],
    ['two steps before', step - 2, step * 30_000, false],
    ['two steps after', step + 2, step * 30_000 + 29_999, false],
    ['two minutes before', step - 4, step * 30_000, false],
    ['two minutes after', step + 4, step * 30_000, false],
  ] as const) {
    assert.equal(stepOf(secret, codeOf(secret, of), atMs), isAccepted ? of : undefined, name)
  }
  for (const wrong of ['', '12345', '1234567', `${codeOf(secret, step)} `, 'abcdef', '１２３４５６']) {
    assert.equal(stepOf(secret, wrong, step * 30_000), undefined, wrong)
  }
  assert.equal(stepOf(secret, codeOf(secret, 0), 0), 0)
})

test('makes secrets of 20 bytes, each another one', () => {
  const secrets = Array.from({ length: 50 }, makeTotpSecret)
  for (const each of secrets) assert.match(each, /^[A-Z2-7]{32}$/)
  assert.equal(new Set(secrets).size, 50)
})

test('accepts secrets of 16 bytes or more in base32', () => {
  for (const good of ['', 'A'.repeat(26), secret, 'A'.repeat(200)]) assert.equal(checkTotpSecret(good), undefined, good)
  const wrongs = ['A', 'A'.repeat(25), secret.toLowerCase(), `${secret}=`, `${secret.slice(0, 31)}1`, `${secret} `, '123456']
  for (const wrong of wrongs) {
    assert.match(checkTotpSecret(wrong) ?? '', /^must be empty, or at least 16 bytes in base32/, wrong)
  }
})

test('writes the address for apps with everything escaped', () => {
  const address = otpauthAddress(secret, { issuer: 'svc on host', user: 'ann:é&b' })
  assert.equal(
    address,
    `otpauth://totp/svc%20on%20host:ann%3A%C3%A9%26b?secret=${secret}&issuer=svc%20on%20host&algorithm=SHA1&digits=6&period=30`,
  )
})
