import assert from 'node:assert/strict'
import { it } from 'node:test'
import { base64url, CharacterSet, hexDigits } from '../lib/character-set.ts'
import { Seeded } from './support/seeded.ts'

it('takes what the pattern of the same characters takes, for every character and for texts of them', () => {
  const rows: [CharacterSet, RegExp][] = [
    [hexDigits, /^[0-9a-f]*$/],
    [base64url, /^[A-Za-z0-9_-]*$/],
    [new CharacterSet('a\0\x7f'), /^[a\0\x7f]*$/],
    [new CharacterSet(''), /^$/],
  ]
  const seeded = new Seeded(1)
  for (const [set, pattern] of rows) {
    for (let code = 0; code < 65_536; code += 1) {
      const character = String.fromCharCode(code)
      assert.equal(set.holdsAll(character), pattern.test(character), `${pattern} ${code}`)
    }
    for (let round = 0; round < 2000; round += 1) {
      const text = Array.from({ length: seeded.integer(5) }, () => seeded.pick(['a', 'f', '0', '-', 'Z', '\0', '.', '\u0161', '\u00e9'])).join('')
      assert.equal(set.holdsAll(text), pattern.test(text), JSON.stringify(text))
    }
  }
})
