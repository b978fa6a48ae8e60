import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { createKeyDerivation } from '../../lib/access/key-derivation.ts'
import { createPasswordCheck, equalTexts, hashPassword } from '../../lib/access/password.ts'
import { makeCredentials, makeSecret } from '../../lib/access/credentials.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { acceptsOnlySecret } from './password-support.ts'
import { cheapHash } from './support.ts'

const check = createPasswordCheck()

test('a plain hash is the MD5 of the password in UTF-8, in lower-case hex', async () => {
  assert.equal(await hashPassword('secret', false), '5ebe2294ecd0e0f08eab7690d2a6ee69')
  assert.equal(await hashPassword('pässwörd', false), createHash('md5').update('pässwörd', 'utf8').digest('hex'))
})

test('accepts only the correct password, in both forms, and checks a hash by its own cost', async () => {
  for (const stored of [await hashPassword('secret', false), cheapHash('secret')]) await acceptsOnlySecret(check, stored)
})

test('accepts a password composed or decomposed, however it was set; an old decomposed hash only as typed', async () => {
  const [composed, decomposed] = ['p\u00e4ssword', 'pa\u0308ssword']
  for (const set of [composed, decomposed]) {
    for (const stored of [await hashPassword(set, false), cheapHash(set.normalize('NFC'))]) {
      for (const typed of [composed, decomposed]) assert.equal(await check.matches(typed, stored), true)
      assert.equal(await check.matches('password', stored), false)
    }
  }
  assert.equal(await hashPassword(decomposed, false), await hashPassword(composed, false))
  for (const before of [createHash('md5').update(decomposed).digest('hex'), cheapHash(decomposed)]) {
    assert.deepEqual([await check.matches(decomposed, before), await check.matches(composed, before)], [true, false])
  }
})

test('refuses an invalid stored hash, or one that requires too many resources', async () => {
  const salt = 'A'.repeat(22)
  const key = 'A'.repeat(43)
  const costs = ['1000$8$1', '1$8$1', '1024$0$1', '1024$8$0', '1048576$8$1']
  const rows = [
    ...['', 'secret', 'scrypt', 'D41D8CD98F00B204E9800998ECF8427E'],
    ...costs.map((cost) => `scrypt$${cost}$${salt}$${key}`),
    ...[`scrypt$1024$8$1$$${key}`, `scrypt$1024$8$1$${salt}$`],
    ...[`$pbkdf2-sha256$i=0$${salt}$${key}`, `$pbkdf2-sha256$i=5000001$${salt}$${key}`, `$pbkdf2-sha256$i=1000$${salt}$`],
  ]
  for (const stored of rows) {
    await assert.rejects(check.matches('secret', stored), /admin\.password in svc\.json is not a valid hash/, stored)
  }
})

test('runs a few scrypt checks at once, queues some, and refuses the rest', async () => {
  const stored = cheapHash('secret')
  const narrow = createPasswordCheck(createKeyDerivation(1, 2))
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => narrow.matches('secret', stored)))
  assert.deepEqual(results.map(({ status }) => status), ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'])
  const { reason } = results[4] as PromiseRejectedResult
  assert.ok(reason instanceof HttpError)
  assert.deepEqual([reason.status, reason.headers['Retry-After']], [503, '1'])
  assert.equal(await narrow.matches('secret', stored), true, 'and is free again')
})

test('compares texts of any length', () => {
  assert.equal(equalTexts('', ''), true)
  assert.equal(equalTexts('ann', 'ann'), true)
  assert.equal(equalTexts('ann', 'anna'), false)
  assert.equal(equalTexts('ann', ''), false)
})

test('a secret is the MD5 of timestamp, user and password; if hardened, 32 random bytes', () => {
  const source = { user: 'ann', password: 'secret', nowMs: 1700000000000 }
  const secret = makeSecret({ ...source, hardened: false })
  assert.equal(secret, createHash('md5').update('1700000000annsecret').digest('hex'))
  const hardened = makeSecret({ ...source, hardened: true })
  assert.equal(Buffer.from(hardened, 'base64url').length, 32)
  assert.notEqual(hardened, makeSecret({ ...source, hardened: true }))
  const secondFactor = { secret: 'x', recoveryCodes: [] }
  assert.match(makeSecret({ ...source, hardened: false, secondFactor }), /^[\w-]{43}$/)
})

test('credentials are the name, the hash and a secret', async () => {
  const made = await makeCredentials({ user: 'ann', password: 'secret', hardened: false, nowMs: 5999 })
  assert.deepEqual(made, {
    user: 'ann',
    password: '5ebe2294ecd0e0f08eab7690d2a6ee69',
    secret: createHash('md5').update('5annsecret').digest('hex'),
  })
})
