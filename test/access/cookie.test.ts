import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'
import { isAdminCookie, makeAdminCookie, type CookieRules } from '../../lib/access/cookie.ts'
import { Seeded } from '../support/seeded.ts'

const nowS = 1_700_000_000
const rules: CookieRules = { secret: 'secret', hardened: false, lifetimeMinutes: 60, nowMs: nowS * 1000 + 999 }
const hardened: CookieRules = { ...rules, hardened: true }
const md5 = (text: string): string => createHash('md5').update(text).digest('hex')
const signed = (timestamp: number | string): string => `${timestamp}:${md5(`secret|${timestamp}`)}`

test('has the form of the specification or, if hardened, an HMAC-SHA256', () => {
  assert.equal(makeAdminCookie(rules), `${nowS}:${md5(`secret|${nowS}`)}`)
  const hmac = createHmac('sha256', 'secret').update(String(nowS)).digest('hex')
  assert.equal(makeAdminCookie(hardened), `${nowS}:${hmac}`)
})

const rows: [what: string, value: string | undefined, passes: boolean, rules?: Partial<CookieRules>][] = [
  ['none', undefined, false],
  ['issued now', signed(nowS), true],
  ['exactly as old as the lifetime', signed(nowS - 3600), true],
  ['a second older', signed(nowS - 3601), false],
  ['very old, without an end', signed(1), true, { lifetimeMinutes: 0 }],
  ['300 s in the future', signed(nowS + 300), true],
  ['301 s in the future', signed(nowS + 301), false],
  ['301 s in the future, without an end', signed(nowS + 301), false, { lifetimeMinutes: 0 }],
  ['12 digits', signed('000000000001'), true, { lifetimeMinutes: 0 }],
  ['13 digits', signed('0000000000001'), false, { lifetimeMinutes: 0 }],
  ['a negative time', signed(-5), false, { lifetimeMinutes: 0 }],
  ['no time', signed(''), false, { lifetimeMinutes: 0 }],
  ['a time with a fraction', signed('17.5'), false, { lifetimeMinutes: 0 }],
  ['another secret', `${nowS}:${md5(`other|${nowS}`)}`, false],
  ['an empty secret', `${nowS}:${md5(`|${nowS}`)}`, false, { secret: '' }],
  ['upper-case hex', signed(nowS).toUpperCase(), false],
  ['one more digit', `${signed(nowS)}0`, false],
  ['one digit less', signed(nowS).slice(0, -1), false],
  ['a suffix', `${signed(nowS)}\n`, false],
  ['a prefix', ` ${signed(nowS)}`, false],
  ['another part', `${signed(nowS)}:1`, false],
  ['empty', '', false],
  ['over-long', signed('1'.repeat(100_000)), false],
  ['MD5 where hardened', signed(nowS), false, { hardened: true }],
  ['HMAC where not hardened', makeAdminCookie(hardened), false],
  ['HMAC where hardened', makeAdminCookie(hardened), true, { hardened: true }],
  ['HMAC of another secret', makeAdminCookie({ ...hardened, secret: 'x' }), false, { hardened: true }],
]

for (const [what, value, passes, changes] of rows) {
  test(`${passes ? 'accepts' : 'refuses'} a cookie: ${what}`, () => {
    assert.equal(isAdminCookie(value, { ...rules, ...changes }), passes)
  })
}

test('refuses every cookie with one changed character', () => {
  const seeded = new Seeded(7)
  for (const kind of [rules, hardened]) {
    const cookie = makeAdminCookie(kind)
    for (let round = 0; round < 2000; round++) {
      const at = seeded.integer(cookie.length)
      const other = String.fromCharCode(seeded.integer(256))
      const changed = cookie.slice(0, at) + other + cookie.slice(at + 1)
      assert.equal(isAdminCookie(changed, kind), changed === cookie, changed)
    }
  }
})
