import assert from 'node:assert/strict'
import { createHmac, hkdfSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { createCsrfTokens, type TokenVerdict } from '../../lib/csrf/token.ts'
import { createResourceTokens } from '../../lib/tokens/resource-id.ts'

const key = 'a key of the application'
const madeAtS = 1_700_000_000
let nowS = madeAtS
const now = (): number => nowS * 1000 + 999
const tokens = createCsrfTokens({ keys: [key], now })
const nonce = '01234567-89ab-cdef-0123-456789abcdef'

/** A token over this text, with a valid signature, made by hand. */
function over(text: string, encoding: 'base64url' | 'base64' = 'base64url', signingKey = key): string {
  const payload = Buffer.from(text).toString(encoding)
  const derived = Buffer.from(hkdfSync('sha256', signingKey, '', 'svc csrf token', 32))
  return `${payload}.${createHmac('sha256', derived).update(payload).digest('hex')}`
}

/** The verdict on a token at a number of seconds after it was made. */
function at(ageS: number, token: string, lapseS: number): TokenVerdict {
  nowS = madeAtS + ageS
  try {
    return tokens.check(token, lapseS)
  } finally {
    nowS = madeAtS
  }
}

describe('a signed CSRF token', () => {
  it('is the base64url of nonce and unix seconds, a dot, and the hex HMAC-SHA256 with a key derived for it', () => {
    const token = tokens.make()
    assert.match(token, /^[A-Za-z0-9_-]{63}\.[0-9a-f]{64}$/)
    const text = Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()
    assert.match(text, /^[0-9a-f-]{36}\|1700000000$/)
    assert.equal(token, over(text))
  })

  it('is never the same twice, and is accepted repeatedly', () => {
    const made = Array.from({ length: 1000 }, () => tokens.make())
    assert.equal(new Set(made).size, made.length)
    for (const token of [...made, ...made]) assert.equal(tokens.check(token, 60), 'ok')
  })

  it('is accepted while its age is at most the lapse', () => {
    const token = tokens.make()
    const rows: Array<[number, number, TokenVerdict]> = [
      [0, 60, 'ok'],
      [60, 60, 'ok'],
      [61, 60, 'expired'],
      [1, 1, 'ok'],
      [2, 1, 'expired'],
      [-300, 60, 'ok'],
      [-301, 60, 'expired'],
      [1e9, 0, 'ok'],
      [-1e9, 0, 'ok'],
    ]
    for (const [ageS, lapseS, verdict] of rows) assert.equal(at(ageS, token, lapseS), verdict, `${ageS} of ${lapseS}`)
  })

  it('is accepted with every key, and is signed with the first', () => {
    const rotated = createCsrfTokens({ keys: ['new', key], now })
    assert.equal(rotated.check(tokens.make(), 60), 'ok')
    assert.equal(tokens.check(rotated.make(), 60), 'signature')
    assert.equal(createCsrfTokens({ keys: ['new'], now }).check(rotated.make(), 60), 'ok')
  })

  it('differs from a resource-id token', () => {
    const resources = createResourceTokens({ keys: [key], now })
    assert.equal(tokens.check(resources.make(nonce), 0), 'signature')
    assert.equal(resources.read(tokens.make()), '')
    assert.equal(resources.read(over('42|1700000000', 'base64')), '')
  })

  it('needs keys, none of them empty', () => {
    assert.throws(() => createCsrfTokens({ keys: [], now }), { name: 'RangeError', message: /there must be a key/ })
    assert.throws(() => createCsrfTokens({ keys: ['', 'a'], now }), { message: /no key may be empty: key 1 is/ })
  })
})

describe('an invalid CSRF token', () => {
  const good = tokens.make()
  const [payload = '', signature = ''] = good.split('.')
  const other = tokens.make()
  const rows: Array<[string, string, TokenVerdict]> = [
    ['a word', 'token', 'malformed'],
    ['a dot', '.', 'malformed'],
    ['only a payload', payload, 'malformed'],
    ['only a signature', `.${signature}`, 'malformed'],
    ['a truncated signature', good.slice(0, -1), 'malformed'],
    ['an upper-case signature', `${payload}.${signature.slice(0, -1)}A`, 'malformed'],
    ['a token twice, as two header fields are joined', `${good}, ${good}`, 'malformed'],
    ['a trailing line end', `${good}\n`, 'malformed'],
    ['a leading space', ` ${good}`, 'signature'],
    ['a truncated payload', `${payload.slice(1)}.${signature}`, 'signature'],
    ['padding', `${payload}=.${signature}`, 'signature'],
    ['the payload of another token', `${other.split('.')[0]}.${signature}`, 'signature'],
    ['the signature of another token', `${payload}.${other.split('.')[1]}`, 'signature'],
    ['a foreign key', over(`${nonce}|${madeAtS}`, 'base64url', 'another key'), 'signature'],
    ['an old token with a foreign key', over(`${nonce}|1`, 'base64url', 'another key'), 'signature'],
    ['the key for resource ids', `${payload}.${createHmac('sha256', key).update(payload).digest('hex')}`, 'signature'],
    ['an old token, correctly signed', over(`${nonce}|1`), 'expired'],
    ['a token from the far future, correctly signed', over(`${nonce}|999999999999`), 'expired'],
    ['no time, correctly signed', over(`${nonce}|`), 'malformed'],
    ['a time of 13 digits, correctly signed', over(`${nonce}|1700000000000`), 'malformed'],
    ['a negative time, correctly signed', over(`${nonce}|-1`), 'malformed'],
    ['no nonce, correctly signed', over(`|${madeAtS}`), 'malformed'],
    ['no bar, correctly signed', over(nonce), 'malformed'],
  ]
  for (const [title, token, verdict] of rows) {
    it(`is ${verdict}: ${title}`, () => assert.equal(tokens.check(token, 60), verdict))
  }
})
