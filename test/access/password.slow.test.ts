import assert from 'node:assert/strict'
import { scryptSync } from 'node:crypto'
import { test } from 'node:test'
import { createPasswordCheck, hashPassword } from '../../lib/access/password.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { acceptsOnlySecret } from './password-support.ts'

test('a hardened hash is scrypt with its own salt, and the configuration accepts it', async () => {
  const [one, two] = await Promise.all([hashPassword('secret', true), hashPassword('secret', true)])
  assert.notEqual(one, two)
  const [name, n, r, p, salt = '', key] = one.split('$')
  assert.deepEqual([name, n, r, p], ['scrypt', '16384', '8', '5'])
  assert.equal(Buffer.from(salt, 'base64url').length, 16)
  const expected = scryptSync('secret', Buffer.from(salt, 'base64url'), 32, { N: 16384, r: 8, p: 5, maxmem: 2 ** 26 })
  assert.equal(key, expected.toString('base64url'))
  assert.equal(parseConfig({ 'admin.password': one }, '/').config['admin.password'], one)
})

test('accepts only the correct password for a hash made by the server', async () => {
  await acceptsOnlySecret(createPasswordCheck(), await hashPassword('secret', true))
})
