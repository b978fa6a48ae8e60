import assert from 'node:assert/strict'
import { it } from 'node:test'
import { decodeBase64url } from '../../lib/jwt/token.ts'
import { Seeded } from '../support/seeded.ts'

it('decodes the canonical text of any bytes', () => {
  const random = new Seeded(41)
  for (let length = 0; length < 200; length += 1) {
    const bytes = random.bytes(length)
    assert.deepEqual(decodeBase64url(bytes.toString('base64url')), bytes)
  }
})

const wrong: readonly (readonly [what: string, text: string])[] = [
  ['padding', 'YQ=='],
  ['a padding of the wrong length', 'YQ='],
  ['the plain alphabet', '+/+/'],
  ['a length that cannot be', 'YWFhY'],
  ['bits behind the last byte', 'YR'],
  ['bits behind the last of two bytes', 'YWF'],
  ['white space', 'YW Fh'],
  ['a line break at the end', 'YWFh\n'],
  ['a dot', 'YWFh.'],
  ['NUL', 'YWFh\0'],
  ['a letter of another script', 'YWFа'],
  ['half a surrogate pair', 'YWF\ud800'],
]

it('refuses every other text', () => {
  for (const [what, text] of wrong) assert.equal(decodeBase64url(text), undefined, what)
})
