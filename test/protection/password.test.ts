// ctx.password: hashes in PHC form, damaged ones refused before any work, and the concurrency limit.
import assert from 'node:assert/strict'
import { pbkdf2Sync, scryptSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { createKeyDerivation, type Cost, type KeyDerivation } from '../../lib/access/key-derivation.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { createPasswords } from '../../lib/protection/password.ts'
import { startApplication } from '../support/application.ts'
import { request } from '../support/request.ts'

const salt = Buffer.alloc(16, 7)
const [composed, decomposed] = ['caf\u00e9 Amelie', 'cafe\u0301 Amelie']
const base64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

/** A cheap hash of `secret`. */
function cheap(ln = 4, r = 1, p = 1, password = 'secret'): string {
  return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(scryptSync(password, salt, 32, { N: 2 ** ln, r, p, maxmem: 2 ** 26 }))}`
}

/** A scrypt that only records its parameters. */
function noting(): { scrypt: KeyDerivation; costs: Cost[] } {
  const costs: Cost[] = []
  const derive: KeyDerivation['derive'] = async (_password, _salt, length, cost) => (costs.push(cost), Buffer.alloc(length))
  return { scrypt: { derive }, costs }
}

describe('a hash of ctx.password', () => {
  const passwords = createPasswords(createKeyDerivation())

  it('is scrypt in PHC form with its own salt, and verifies', async () => {
    const [one, two] = await Promise.all([passwords.hash('pässwörd'), passwords.hash('pässwörd')])
    const [, form = '', salt = '', key = ''] = /^\$(scrypt\$ln=14,r=8,p=5)\$([\w+/]{22})\$([\w+/]{43})$/.exec(one) ?? []
    assert.equal(form, 'scrypt$ln=14,r=8,p=5')
    assert.notEqual(one, two)
    const expected = scryptSync('pässwörd', Buffer.from(salt, 'base64'), 32, { N: 16384, r: 8, p: 5, maxmem: 2 ** 26 })
    assert.equal(key, base64(expected))
    assert.deepEqual(await passwords.verify('pässwörd', one), { ok: true, stale: false })
    assert.deepEqual(await passwords.verify('passwörd', one), { ok: false, stale: false })
  })

  it('is made from the normal form, so that é can be typed as one code point or as two', async () => {
    for (const typed of [composed, decomposed]) {
      const stored = await passwords.hash(typed)
      for (const again of [composed, decomposed]) {
        assert.deepEqual(await passwords.verify(again, stored), { ok: true, stale: false })
      }
      assert.deepEqual(await passwords.verify('caffe\u0301', stored), { ok: false, stale: false })
    }
  })

  it('made from a decomposed password by an earlier version still matches, and is stale', async () => {
    const stored = cheap(14, 8, 5, decomposed)
    assert.deepEqual(await passwords.verify(decomposed, stored), { ok: true, stale: true })
    assert.deepEqual(await passwords.verify(composed, stored), { ok: false, stale: false })
    const { scrypt, costs } = noting()
    const noted = createPasswords(scrypt)
    await noted.verify(decomposed, stored)
    const before = costs.splice(0).length
    await noted.verify(decomposed, undefined)
    assert.deepEqual([before, costs.length], [2, 2], 'nobody costs as much as somebody')
  })

  it('with other parameters is checked, and stale', async () => {
    for (const stored of [cheap(), cheap(4, 2), cheap(4, 1, 2)]) {
      assert.deepEqual(await passwords.verify('secret', stored), { ok: true, stale: true }, stored)
      for (const wrong of ['', 'Secret', 'secret ', stored]) {
        assert.deepEqual(await passwords.verify(wrong, stored), { ok: false, stale: true }, wrong)
      }
    }
  })

  it('made with PBKDF2, where there is no scrypt, is checked, and stale', async () => {
    const key = base64(pbkdf2Sync('secret', salt, 1000, 32, 'sha256'))
    const stored = `$pbkdf2-sha256$i=1000$${base64(salt)}$${key}`
    assert.deepEqual(await passwords.verify('secret', stored), { ok: true, stale: true })
    assert.deepEqual(await passwords.verify('Secret', stored), { ok: false, stale: true })
  })

  it('of an unknown user costs the same, and never matches', async () => {
    const { scrypt, costs } = noting()
    const noted = createPasswords(scrypt)
    assert.deepEqual(await noted.verify('secret', undefined), { ok: false, stale: false })
    await noted.hash('secret')
    assert.deepEqual(costs, [{ N: 16384, r: 8, p: 5 }, { N: 16384, r: 8, p: 5 }])
  })

  it('that is malformed, damaged or too expensive is refused before any work', async () => {
    const { scrypt, costs } = noting()
    const noted = createPasswords(scrypt)
    const good = cheap()
    const [saltText, keyText] = [base64(salt), good.split('$').at(-1) ?? '']
    const of = (parameters: string): string => `$scrypt$${parameters}$${saltText}$${keyText}`
    const rows: readonly (readonly [stored: unknown, message: RegExp])[] = [
      ...['', ' ', good.slice(0, -1), good.slice(1), `${good} `, `${good}\n`, `${good}=`, good.toUpperCase(), null, 7, {}].map((stored) => [stored, /not a hash/] as const),
      ['5ebe2294ecd0e0f08eab7690d2a6ee69', /not a hash/],
      [`scrypt$16384$8$5$${saltText}$${keyText}`, /not a hash/],
      ['$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy', /not a hash/],
      [`$argon2id$v=19$m=65536,t=3,p=4$${saltText}$${keyText}`, /not a hash/],
      [`$scrypt$ln=4,r=1,p=1$$${keyText}`, /not a hash/],
      ...['i=0', 'i=5000001', 'i=99999999', 'i=-1', 'i=1e3', 'i=600000,l=32'].map((cost) => {
        return [`$pbkdf2-sha256$${cost}$${saltText}$${keyText}`, /not a hash/] as const
      }),
      [`$pbkdf2-sha512$i=1000$${saltText}$${keyText}`, /not a hash/],
      [`$pbkdf2-sha256$i=1000$${saltText}$`, /not a hash/],
      [of('ln=0,r=1,p=1'), /not a hash/],
      [of('ln=4,r=0,p=1'), /not a hash/],
      [of('ln=4,r=1,p=0'), /not a hash/],
      [of('r=1,ln=4,p=1'), /not a hash/],
      [of('ln=-4,r=1,p=1'), /not a hash/],
      [of('ln=4.5,r=1,p=1'), /not a hash/],
      [of('ln=1000000000,r=1,p=1'), /not a hash/],
      [of('ln=18,r=1,p=1'), /is too expensive: it has ln=18,r=1,p=1; the limit is ln=17,r=16,p=16 and 160 MiB$/],
      [of('ln=99,r=1,p=1'), /too expensive/],
      [of('ln=4,r=17,p=1'), /too expensive/],
      [of('ln=4,r=1,p=17'), /too expensive/],
      [of('ln=17,r=16,p=1'), /too expensive/], // 256 MiB.
    ]
    for (const [stored, message] of rows) {
      await assert.rejects(noted.verify('secret', stored as string), (error: Error) => message.test(error.message) && !(error instanceof HttpError), String(stored))
    }
    await noted.verify('secret', of('ln=17,r=8,p=16'))
    assert.deepEqual(costs, [{ N: 2 ** 17, r: 8, p: 16 }])
  })

  it('of a password that is too long, or not a string, is not made', async () => {
    const { scrypt, costs } = noting()
    const noted = createPasswords(scrypt)
    const tooLong = (error: unknown): boolean => error instanceof HttpError && error.status === 422 && error.code === 'password_too_long'
    for (const text of ['x'.repeat(1025), 'ä'.repeat(513)]) {
      await assert.rejects(noted.hash(text), tooLong)
      await assert.rejects(noted.verify(text, cheap()), tooLong)
      await assert.rejects(noted.verify(text, undefined), tooLong)
    }
    for (const text of [undefined, null, 7]) {
      await assert.rejects(noted.hash(text as unknown as string), /TypeError|A password must be a string/)
      await assert.rejects(noted.verify(text as unknown as string, cheap()), TypeError)
    }
    assert.equal(costs.length, 0)
    await noted.hash('x'.repeat(1024))
  })
})

describe('200 sign-ins at once', () => {
  it('are checked two at a time while other requests are served; with 100 waiting, more get 503', async (t) => {
    const { url, app } = await startApplication(t, {
      'routes/a.json': [
        { name: 'in', url: '/in', method: 'POST', action: 'a.mjs@enter' },
        { name: 'plain', url: '/plain', action: 'a.mjs' },
      ],
      'a.mjs': `
        const stored = ${JSON.stringify(cheap(12, 8))}
        export const enter = async ({ password, readText }) => password.verify(await readText(), stored)
        export default () => 'plain'`,
    })
    const answers = Promise.all(Array.from({ length: 200 }, () => request(`${url}/in`, { body: 'secret' })))
    assert.equal((await request(`${url}/plain`)).text, 'plain')
    const statuses = (await answers).map(({ status, headers }) => [status, headers['retry-after']] as const)
    const count = (wanted: number): number => statuses.filter(([status]) => status === wanted).length
    assert.equal(count(200) + count(503), 200)
    assert.ok(count(200) >= 102 && count(503) > 0, `${count(200)} of 200`)
    assert.ok(statuses.every(([status, retry]) => status === 200 || retry === '1'))
    assert.deepEqual((await request(`${url}/in`, { body: 'secret' })).json(), { ok: true, stale: true })
    assert.deepEqual(app.warnings(), [])
  })
})
