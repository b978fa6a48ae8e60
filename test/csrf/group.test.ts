import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCsrfGroup } from '../../lib/csrf/group.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import { SettingsError } from '../../lib/chain/settings.ts'

const options = { keys: ['test'], trustedOrigins: [], log: () => silentLogger, now: Date.now }
const group = createCsrfGroup(options)

describe('the group csrf', () => {
  it('has its middlewares', () => {
    assert.equal(group.name, 'csrf')
    assert.deepEqual([...group.middleware.keys()], ['SVC_MwCsrfCheck', 'SVC_MwCsrf', 'SVC_MwOrigin'])
  })

  it('accepts valid settings', () => {
    const rows: unknown[] = [
      undefined,
      {},
      { redirect: '', header: 'x-csrf-token', field: '_csrf', lapse: 0 },
      { redirect: '/', header: 'X-XSRF-TOKEN', field: 'authenticity token', lapse: 31_536_000 },
      { redirect: '/login?again=1#form' },
      { redirect: 'https://example.org/login' },
      { redirect: 'http://localhost:3000' },
    ]
    for (const given of rows) {
      const prepared = group.prepare(given)
      assert.deepEqual([prepared.warnings, prepared.unready], [[], undefined])
    }
  })

  it('names every invalid setting', () => {
    const rows: Array<[unknown, RegExp]> = [
      ['on', /^setup\.csrf must be an object with redirect, header, field, lapse$/],
      [{ redirect: 'login' }, /^setup\.csrf\.redirect must be a path that begins with one slash, .*: it is "login"$/],
      [{ redirect: '//evil.example' }, /setup\.csrf\.redirect must be a path/],
      [{ redirect: '/\\evil.example' }, /setup\.csrf\.redirect must be a path/],
      [{ redirect: '/a\nb' }, /setup\.csrf\.redirect must be a path/],
      [{ redirect: 'javascript:alert(1)' }, /setup\.csrf\.redirect must be a path/],
      [{ redirect: 'https://' }, /setup\.csrf\.redirect must be a path/],
      [{ redirect: 'https://a b' }, /setup\.csrf\.redirect must be a path/],
      [{ redirect: 'https://[/' }, /setup\.csrf\.redirect must be a path/],
      [{ header: '' }, /^setup\.csrf\.header must be the name of a header field/],
      [{ header: 'x csrf' }, /^setup\.csrf\.header must be the name of a header field/],
      [{ field: '' }, /^setup\.csrf\.field must not be empty/],
      [{ lapse: -1 }, /^setup\.csrf\.lapse must be 0 to 31536000: it is -1$/],
      [{ lapse: 1.5 }, /^setup\.csrf\.lapse must be a whole number/],
      [{ lapse: 31_536_001, field: 1 }, /^setup\.csrf\.field .*; setup\.csrf\.lapse/],
    ]
    for (const [given, message] of rows) {
      const isExpected = (error: unknown): boolean => error instanceof SettingsError && message.test(error.message)
      assert.throws(() => group.prepare(given), isExpected, String(message))
    }
  })

  it('warns of an unknown key', () => {
    assert.deepEqual(group.prepare({ lapsed: 1 }).warnings, ['unknown key setup.csrf.lapsed: did you mean lapse?'])
  })

  it('needs keys', () => {
    assert.throws(() => createCsrfGroup({ ...options, keys: [] }), /there must be a key/)
  })
})
