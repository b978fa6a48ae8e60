import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSpoiledTexts, takenBytes } from './samples-support.ts'

const rows: readonly (readonly [string, string, boolean])[] = [
  ['', 'nothing', true],
  ['41', 'ASCII', true],
  ['c280', 'the least of two bytes', true],
  ['dfbf', 'the most of two bytes', true],
  ['e0a080', 'the least of three bytes', true],
  ['ed9fbf', 'before the surrogates', true],
  ['ee8080', 'behind the surrogates', true],
  ['efbfbf', 'the most of three bytes', true],
  ['efbbbf41', 'a byte order mark', true],
  ['f0908080', 'the least of four bytes', true],
  ['f48fbfbf', 'the last character there is', true],
  ['cebae1bdb9cf83cebcceb5', 'Greek', true],
  ['80', 'a continuation alone', false],
  ['bf80', 'two of them', false],
  ['808080', 'three of them', false],
  ['41808080', 'three of them behind ASCII', false],
  ['c0af', 'an overlong slash', false],
  ['c1bf', 'overlong ASCII', false],
  ['e09fbf', 'overlong in three bytes', false],
  ['f08fbfbf', 'overlong in four bytes', false],
  ['eda080', 'a surrogate', false],
  ['edbfbf', 'the last surrogate', false],
  ['f4908080', 'beyond U+10FFFF', false],
  ['f5808080', 'a lead that does not exist', false],
  ['f888808080', 'five bytes', false],
  ['fe', 'fe', false],
  ['ff', 'ff', false],
  ['c241', 'a second byte that is none', false],
  ['e28241', 'a third byte that is none', false],
  ['f0908041', 'a fourth byte that is none', false],
  ['c2', 'one of two bytes', false],
  ['e282', 'two of three bytes', false],
  ['f09080', 'three of four bytes', false],
]

for (const [hex, what, valid] of rows) {
  test(`takes ${what} (${hex}) for ${valid ? 'UTF-8' : 'wrong or incomplete'}, however it is cut`, () => {
    const bytes = Buffer.from(hex, 'hex')
    assert.equal(takenBytes(bytes, [bytes.length]).complete, valid)
    for (let first = 0; first <= bytes.length; first += 1) {
      for (let second = first; second <= bytes.length; second += 1) {
        assert.equal(takenBytes(bytes, [first, second, bytes.length]).complete, valid, `${first}, ${second}`)
      }
    }
  })
}

test('fails with the very byte that spoils a text', () => checkSpoiledTexts(1000))
