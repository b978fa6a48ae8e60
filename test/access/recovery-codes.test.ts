import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkRecoveryHash, hashOfRecoveryCode, makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'

test('makes ten codes of 120 bits, each another one', () => {
  const made = Array.from({ length: 20 }, makeRecoveryCodes)
  for (const { codes, hashes } of made) {
    assert.deepEqual([codes.length, hashes.length], [10, 10])
    for (const code of codes) assert.match(code, /^[a-z2-7]{4}(-[a-z2-7]{4}){5}$/)
    for (const hash of hashes) assert.equal(checkRecoveryHash(hash), undefined)
  }
  assert.equal(new Set(made.flatMap(({ codes }) => codes)).size, 200)
  assert.equal(new Set(made.flatMap(({ hashes }) => hashes.map((hash) => hash.split('$')[1]))).size, 200)
})

test('finds the hash of a code, however it is typed', () => {
  const { codes, hashes } = makeRecoveryCodes()
  codes.forEach((code, at) => {
    for (const typed of [code, code.toUpperCase(), code.replaceAll('-', ''), ` ${code.replaceAll('-', ' ')}\n`]) {
      assert.equal(hashOfRecoveryCode(typed, hashes), hashes[at], typed)
    }
    assert.equal(hashOfRecoveryCode(code, hashes.toSpliced(at, 1)), undefined)
  })
  const [code = ''] = codes
  for (const wrong of ['', '-', code.slice(1), `${code}a`, code.replace(/^./, '1'), hashes[0] ?? '']) {
    assert.equal(hashOfRecoveryCode(wrong, hashes), undefined, wrong)
  }
})

test('does not store a code, and takes nothing else for a hash', () => {
  const { codes, hashes } = makeRecoveryCodes()
  for (const code of codes) {
    for (const text of [code, code.replaceAll('-', '')]) assert.ok(!hashes.join('\n').includes(text))
  }
  const [hash = ''] = hashes
  for (const wrong of ['', codes[0] ?? '', hash.slice(1), `${hash}x`, hash.replace('sha256', 'md5')]) {
    assert.match(checkRecoveryHash(wrong) ?? '', /^must be hashes of recovery codes/, wrong)
  }
})
