import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { CredentialStore } from '../../lib/access/credential-store.ts'
import { makeRecoveryCodes } from '../../lib/access/recovery-codes.ts'
import { createCredentialWriter } from '../../lib/config/credential-writer.ts'
import { parseConfig } from '../../lib/config/load.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const nowMs = 1_700_000_000_500

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}

/** A store with a file that does not exist yet. */
function make(config: Readonly<Record<string, unknown>> = {}) {
  const file = join(temporaryFolder(), 'svc.json')
  const { config: parsed } = parseConfig(config, '/')
  const store = new CredentialStore({
    config: parsed,
    writer: createCredentialWriter(file, parsed, () => {}),
    appKey: 'in use',
    now: () => nowMs,
  })
  return { store, file, saved: () => JSON.parse(readFileSync(file, 'utf8')) as unknown }
}

test('starts with the configured credentials', () => {
  const { store } = make({ admin: { user: 'ann', password: md5('p'), secret: 's' }, app_key: 'k' })
  assert.deepEqual(store.current, { user: 'ann', password: md5('p'), secret: 's' })
  assert.equal(store.keySaved, true)
})

test('a setup is written first and then in effect', async () => {
  const { store, saved } = make()
  assert.equal(store.keySaved, false)
  assert.equal(await store.setUp('ann', 'password'), true)
  const made = { user: 'ann', password: md5('password'), secret: md5('1700000000annpassword') }
  assert.deepEqual(store.current, made)
  assert.deepEqual(saved(), { admin: made, app_key: 'in use' })
  assert.equal(store.keySaved, true)
})

test('a setup in dev, or with a configured key, does not change app_key', async () => {
  for (const config of [{ 'app.env': 'dev' }, { app_key: 'own' }]) {
    const { store, saved } = make(config)
    await store.setUp('ann', 'password')
    assert.deepEqual(Object.keys(saved() as object), ['admin'])
  }
})

test('concurrent setups: the first wins, the others are told', async () => {
  const { store } = make()
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((user) => store.setUp(user, 'password'))), [
    true,
    false,
    false,
  ])
  assert.equal(store.current.user, 'a')
})

test('a setup loads credentials written to the file since the start, and is refused', async () => {
  const { store, file } = make()
  const written = { user: 'ann', password: md5('p'), secret: 's' }
  writeFileSync(file, JSON.stringify({ admin: written }))
  assert.equal(await store.setUp('eve', 'password'), false)
  assert.deepEqual([store.current, store.keySaved], [written, false])
})

test('half of the credentials in the file do not block a setup', async () => {
  const { store, file, saved } = make()
  writeFileSync(file, JSON.stringify({ admin: { user: 'ann', password: '' } }))
  assert.equal(await store.setUp('bob', 'password'), true)
  assert.equal((saved() as { admin: { user: string } }).admin.user, 'bob')
})

test('a failure changes nothing and blocks nobody', async () => {
  const { store, file } = make()
  mkdirSync(file)
  const [failed, alsoFailed] = await Promise.allSettled([
    store.setUp('ann', 'password'),
    store.setUp('bob', 'password'),
  ])
  assert.deepEqual([failed.status, alsoFailed.status], ['rejected', 'rejected'])
  assert.deepEqual([store.current.user, store.keySaved], ['', false])
  rmSync(file, { recursive: true })
  assert.equal(await store.setUp('cat', 'password'), true)
  assert.equal(store.current.user, 'cat')
})

test('a secret is made if there is none, once, and saved', async () => {
  const { store, saved } = make({ admin: { user: 'ann', password: md5('p') } })
  const secret = md5(`1700000000ann${md5('p')}`)
  assert.deepEqual(await Promise.all([store.ensureSecret(), store.ensureSecret()]), [
    { secret, made: true },
    { secret, made: false },
  ])
  assert.deepEqual(store.current, { user: 'ann', password: md5('p'), secret })
  assert.deepEqual(saved(), { admin: { secret } })
})

test('a secret that cannot be saved is not used', async () => {
  const { store, file } = make()
  writeFileSync(file, 'no JSON')
  await assert.rejects(store.ensureSecret(), /Cannot save .*svc\.json/)
  assert.equal(store.current.secret, '')
})

test('shared credentials are applied, whatever the state of the file', () => {
  const { store, file } = make()
  const shared = { user: 'ann', password: md5('p'), secret: 's' }
  writeFileSync(file, 'no JSON')
  store.share(shared)
  assert.deepEqual([store.current, store.keySaved], [shared, false])
  writeFileSync(file, JSON.stringify({ admin: shared, app_key: 'in use' }))
  store.share(shared)
  assert.equal(store.keySaved, true)
})

test('used recovery codes are removed from the file, and only they', () => {
  const { hashes } = makeRecoveryCodes()
  const totp = 'A'.repeat(32)
  const admin = { user: 'ann', password: md5('p'), secret: 's', totp, recovery_codes: hashes }
  const { store, file, saved } = make({ admin })
  writeFileSync(file, JSON.stringify({ mine: 1, admin }))
  const [one = '', two = '', ...others] = hashes
  store.forgetRecoveryCodes([one])
  assert.deepEqual(saved(), { mine: 1, admin: { ...admin, recovery_codes: hashes.slice(1) } })
  assert.deepEqual(store.current.secondFactor, { secret: totp, recoveryCodes: hashes.slice(1) })
  assert.deepEqual(store.own, store.current)
  writeFileSync(file, JSON.stringify({ mine: 1, admin })) // Another process has written it at the same time.
  store.forgetRecoveryCodes([one, two])
  assert.deepEqual(saved(), { mine: 1, admin: { ...admin, recovery_codes: others } })
  writeFileSync(file, 'no JSON')
  assert.throws(() => store.forgetRecoveryCodes([...hashes]))
  assert.deepEqual(store.current.secondFactor?.recoveryCodes, [])
})

test('a setup keeps the second factor, and those of another process replace it', async () => {
  const { store, saved } = make({ admin: { totp: 'A'.repeat(32) } })
  const secondFactor = { secret: 'A'.repeat(32), recoveryCodes: [] }
  await store.setUp('ann', 'password')
  assert.deepEqual(store.current.secondFactor, secondFactor)
  assert.match(store.current.secret, /^[\w-]{43}$/)
  const others = { user: 'bob', password: md5('p'), secret: 's' }
  store.adopt({ ...others, secondFactor })
  assert.deepEqual(saved(), { admin: { ...others, totp: 'A'.repeat(32), recovery_codes: [] }, app_key: 'in use' })
  store.adopt(others)
  assert.deepEqual(saved(), { admin: { ...others, totp: '', recovery_codes: [] }, app_key: 'in use' })
})

test('in hardened mode, everything is made in the hardened form', async () => {
  const { store } = make({ 'admin.hardened': true })
  await store.setUp('ann', 'password')
  assert.match(store.current.password, /^scrypt\$/)
  assert.match(store.current.secret, /^[\w-]{43}$/)
})

test('without a file everything is in memory, with the wall clock', async () => {
  const store = new CredentialStore({ config: parseConfig({}, '/').config, writer: undefined, appKey: 'k' })
  assert.equal(await store.setUp('ann', 'password'), true)
  assert.equal(store.current.user, 'ann')
  assert.ok(!existsSync(join(temporaryFolder(), 'svc.json')))
})
