import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkSetup } from '../../lib/access/credentials.ts'

const empty = 'Username cannot be empty'
const short = 'Password must be at least 6 characters'
const different = 'Passwords do not match'

const rows: [user: string, password: string, password2: string, message: string | undefined][] = [
  ['ann', 'secret', 'secret', undefined],
  ['a', '123456', '123456', undefined],
  ['ann', '      ', '      ', undefined],
  ['', '', 'x', empty],
  ['  ', 'secret', 'secret', empty],
  ['ann', '', '', short],
  ['ann', '12345', '12345', short],
  ['ann', '12345', 'other', short],
  ['ann', '🔑🔑🔑', '🔑🔑🔑', short],
  ['ann', '🔑🔑🔑🔑🔑🔑', '🔑🔑🔑🔑🔑🔑', undefined],
  ['ann', 'e\u0301e\u0301e\u0301', 'e\u0301e\u0301e\u0301', short],
  ['ann', 'passe\u0301', 'pass\u00e9', short],
  ['ann', 'passe\u0301s', 'pass\u00e9s', undefined],
  ['ann', 'secret', 'Secret', different],
  ['ann', 'secret', '', different],
]

for (const [user, password, password2, message] of rows) {
  test(`${JSON.stringify([user, password, password2])}: ${message ?? 'valid'}`, () => {
    assert.equal(checkSetup({ user, password, password2 }), message)
  })
}
