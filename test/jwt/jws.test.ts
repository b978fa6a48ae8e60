import assert from 'node:assert/strict'
import { createPublicKey, createSecretKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Algorithm } from '../../lib/jwt/settings.ts'
import { algorithms, maxTokenBytes, verifyJws } from '../../lib/jwt/token.ts'
import { ed25519, hmacToken, p256, part, rsa, secret, signedToken } from './tokens.ts'

const secretKey = createSecretKey(Buffer.from(secret))
const publicJwk = (key: JsonWebKey): KeyObject => createPublicKey({ key, format: 'jwk' })

/** The payload of RFC 7515, appendices A.1 to A.3 and A.5. */
const joe = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
const joeClaims = { iss: 'joe', exp: 1300819380, 'http://example.com/is_root': true }
const n =
  'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pC' +
  'gNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg6' +
  '65xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRW' +
  'yuXpoQ'
const rs256Signature =
  'cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t' +
  '1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12j' +
  'zDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQ' +
  'Ge77Rw'

const vectors: readonly (readonly [source: string, algorithm: Algorithm, key: KeyObject, token: string])[] = [
  [
    'RFC 7515 A.1',
    'HS256',
    createSecretKey(
      'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
      'base64url',
    ),
    `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${joe}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`,
  ],
  ['RFC 7515 A.2', 'RS256', publicJwk({ kty: 'RSA', n, e: 'AQAB' }), `eyJhbGciOiJSUzI1NiJ9.${joe}.${rs256Signature}`],
  [
    'RFC 7515 A.3',
    'ES256',
    publicJwk({
      kty: 'EC',
      crv: 'P-256',
      x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
      y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
    }),
    `eyJhbGciOiJFUzI1NiJ9.${joe}.` +
      'DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q',
  ],
]

describe('the examples of the standards', () => {
  for (const [source, algorithm, key, token] of vectors) {
    it(`${source}: verifies ${algorithm}, and not with a byte changed`, () => {
      assert.deepEqual(verifyJws(token, [algorithm], key), { payload: joeClaims })
      const other = token.replace('.eyJpc3MiOiJqb2Ui', '.eyJpc3MiOiJqb2Uj')
      assert.deepEqual(verifyJws(other, [algorithm], key), { problem: 'the signature of the token is wrong' })
    })
  }

  it('RFC 8037 A.4: verifies EdDSA; its payload is not a JSON object', () => {
    const key = publicJwk({ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' })
    const signed = 'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc'
    const signature = 'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'
    assert.equal(algorithms.EdDSA.verify(signed, Buffer.from(signature, 'base64url'), key), true)
    assert.equal(algorithms.EdDSA.verify(`${signed}A`, Buffer.from(signature, 'base64url'), key), false)
    const problem = 'the payload of the token is not a JSON object'
    assert.deepEqual(verifyJws(`${signed}.${signature}`, ['EdDSA'], key), { problem })
  })

  it('RFC 7515 A.5: refuses the unsecured token', () => {
    const problem = 'the algorithm of the token is not accepted here'
    for (const algorithm of ['HS256', 'RS256', 'ES256', 'EdDSA'] as const) {
      assert.deepEqual(verifyJws(`eyJhbGciOiJub25lIn0.${joe}.`, [algorithm], secretKey), { problem })
    }
  })
})

describe('verifyJws', () => {
  it('verifies every algorithm', () => {
    const rows: readonly (readonly [Algorithm, KeyObject, string])[] = [
      ['HS256', secretKey, hmacToken({ alg: 'HS256' }, { a: 1 })],
      ['HS384', secretKey, hmacToken({ alg: 'HS384' }, { a: 1 }, secret, 'sha384')],
      ['HS512', secretKey, hmacToken({ alg: 'HS512' }, { a: 1 }, secret, 'sha512')],
      ['RS256', rsa.publicKey, signedToken('RS256', { a: 1 }, rsa.privateKey)],
      ['ES256', p256.publicKey, signedToken('ES256', { a: 1 }, p256.privateKey)],
      ['EdDSA', ed25519.publicKey, signedToken('EdDSA', { a: 1 }, ed25519.privateKey)],
    ]
    for (const [algorithm, key, token] of rows) {
      assert.deepEqual(verifyJws(token, [algorithm], key), { payload: { a: 1 } }, algorithm)
    }
  })

  it('accepts any of several algorithms, and no other of their kind', () => {
    const token = hmacToken({ alg: 'HS384' }, {}, secret, 'sha384')
    assert.deepEqual(verifyJws(token, ['HS512', 'HS384'], secretKey), { payload: {} })
    const problem = 'the algorithm of the token is not accepted here'
    assert.deepEqual(verifyJws(token, ['HS512', 'HS256'], secretKey), { problem })
  })

  it('ignores keys in the header', () => {
    const own = p256.publicKey.export({ format: 'jwk' })
    const header = { alg: 'HS256', jwk: own, jku: 'http://127.0.0.1:1/', kid: '../../dev/null', typ: 'x', cty: 1 }
    assert.deepEqual(verifyJws(hmacToken(header, { a: 1 }), ['HS256'], secretKey), { payload: { a: 1 } })
  })

  it('keeps a member named __proto__ a member', () => {
    const token = hmacToken('{"alg":"HS256","__proto__":{"crit":[]}}', '{"__proto__":{"admin":true}}')
    const reading = verifyJws(token, ['HS256'], secretKey)
    assert.ok('payload' in reading)
    assert.deepEqual([Object.keys(reading.payload), reading.payload['admin']], [['__proto__'], undefined])
    assert.ok('problem' in verifyJws(hmacToken('{"__proto__":{"alg":"HS256"}}', '{}'), ['HS256'], secretKey))
  })

  const good = hmacToken({ alg: 'HS256' }, { a: 1 })
  const [header = '', payload = '', signature = ''] = good.split('.')
  const tooLong = hmacToken({ alg: 'HS256' }, { a: 'x'.repeat(maxTokenBytes) })
  const asHmac = hmacToken({ alg: 'HS256' }, { a: 1 }, String(rsa.publicKey.export({ type: 'spki', format: 'pem' })))
  const dots = 'the token does not have three parts with dots between them'
  const encoding = 'a part of the token is not base64url'
  const noHeader = 'the header of the token is not a JSON object'
  const noPayload = 'the payload of the token is not a JSON object'
  const critical = 'the header of the token has crit or b64'
  const algorithm = 'the algorithm of the token is not accepted here'
  const wrongSignature = 'the signature of the token is wrong'
  const wrong: readonly (readonly [what: string, token: string, problem: string])[] = [
    ['nothing', '', dots],
    ['one part', header, dots],
    ['two parts', `${header}.${payload}`, dots],
    ['four parts', `${good}.`, dots],
    ['five parts, as an encrypted token has', `${good}.a.b`, dots],
    ['dots alone', '..', noHeader],
    ['a token that is too long', tooLong, `the token is longer than ${maxTokenBytes} bytes`],
    ['padding', `${header}=.${payload}.${signature}`, encoding],
    ['white space', `${header}.${payload} .${signature}`, encoding],
    ['a signature in the plain alphabet', `${header}.${payload}.${signature.slice(0, -1)}+`, encoding],
    ['a signature with bits behind its last byte', `${header}.${payload}.${'A'.repeat(42)}B`, encoding],
    ['no header', `.${payload}.${signature}`, noHeader],
    ['a header that is no JSON', hmacToken('{alg:"HS256"}', {}), noHeader],
    ['a header that is an array', hmacToken(['HS256'], {}), noHeader],
    ['a header that is null', hmacToken(null, {}), noHeader],
    ['a header that is a text', hmacToken('"HS256"', {}), noHeader],
    ['a header that is not UTF-8', hmacToken(Buffer.from('{"alg":"HS256","a":"\xff"}', 'latin1'), {}), noHeader],
    ['a header with a byte order mark', hmacToken('\ufeff{"alg":"HS256"}', {}), noHeader],
    ['no alg', hmacToken({ typ: 'JWT' }, {}), algorithm],
    ['alg that is no text', hmacToken({ alg: ['HS256'] }, {}), algorithm],
    ['alg null', hmacToken({ alg: null }, {}), algorithm],
    ['alg none', `${part({ alg: 'none' })}.${payload}.`, algorithm],
    ['alg None with a signature', hmacToken({ alg: 'None' }, {}), algorithm],
    ['alg in lower case', hmacToken({ alg: 'hs256' }, {}), algorithm],
    ['alg that is a name of every object', hmacToken({ alg: 'constructor' }, {}), algorithm],
    ['an algorithm that is not asked for', hmacToken({ alg: 'HS512' }, {}, secret, 'sha512'), algorithm],
    ['an algorithm of another kind', signedToken('RS256', {}, rsa.privateKey), algorithm],
    ['the last of two alg', hmacToken('{"alg":"HS256","alg":"none"}', {}), algorithm],
    ['crit', hmacToken({ alg: 'HS256', crit: ['exp'], exp: 1 }, {}), critical],
    ['crit that is empty', hmacToken({ alg: 'HS256', crit: [] }, {}), critical],
    ['b64 with crit', hmacToken({ alg: 'HS256', b64: false, crit: ['b64'] }, {}), critical],
    ['b64 without crit', hmacToken({ alg: 'HS256', b64: false }, {}), critical],
    ['a signature that is empty', `${header}.${payload}.`, wrongSignature],
    ['a signature of another payload', `${header}.${part({ a: 2 })}.${signature}`, wrongSignature],
    ['a signature that is truncated', `${header}.${payload}.${Buffer.alloc(31).toString('base64url')}`, wrongSignature],
    ['a signature with letters behind it', `${good}AAAA`, wrongSignature],
    ['a signature with a letter behind it', `${good}AA`, encoding],
    ['a signature with a byte more', `${header}.${payload}.${Buffer.alloc(33).toString('base64url')}`, wrongSignature],
    ['another secret', hmacToken({ alg: 'HS256' }, {}, 'other'), wrongSignature],
    ['a public key as the secret', asHmac, wrongSignature],
    ['a signature of another hash', hmacToken({ alg: 'HS256' }, {}, secret, 'sha512'), wrongSignature],
    ['a payload that is no JSON', hmacToken({ alg: 'HS256' }, 'text'), noPayload],
    ['a payload that is an array', hmacToken({ alg: 'HS256' }, []), noPayload],
    ['a payload that is a number', hmacToken({ alg: 'HS256' }, 1), noPayload],
    ['a payload that is empty', hmacToken({ alg: 'HS256' }, ''), noPayload],
    ['a payload that is not UTF-8', hmacToken({ alg: 'HS256' }, Buffer.from('{"a":"\xff"}', 'latin1')), noPayload],
  ]
  for (const [what, token, problem] of wrong) {
    it(`refuses ${what}`, () => assert.deepEqual(verifyJws(token, ['HS256'], secretKey), { problem }))
  }

  it('accepts a token of the maximum size', () => {
    const empty = hmacToken({ alg: 'HS256' }, { a: '' })
    const longest = hmacToken({ alg: 'HS256' }, { a: 'x'.repeat(Math.floor(((maxTokenBytes - empty.length) * 3) / 4)) })
    assert.ok(longest.length <= maxTokenBytes && longest.length > maxTokenBytes - 4)
    assert.ok('payload' in verifyJws(longest, ['HS256'], secretKey))
  })

  it('refuses signatures of any other length, and of zeros, for every public key', () => {
    const rows = [['RS256', rsa], ['ES256', p256], ['EdDSA', ed25519]] as const
    for (const [alg, { publicKey, privateKey }] of rows) {
      const [head = '', body = '', text = ''] = signedToken(alg, {}, privateKey).split('.')
      const bytes = Buffer.from(text, 'base64url')
      const zero = Buffer.alloc(1)
      const longer = [Buffer.concat([bytes, zero]), Buffer.concat([zero, bytes])]
      for (const other of [Buffer.alloc(0), Buffer.alloc(bytes.length), bytes.subarray(1), ...longer]) {
        const reading = verifyJws(`${head}.${body}.${other.toString('base64url')}`, [alg], publicKey)
        assert.deepEqual(reading, { problem: wrongSignature }, `${alg}, ${other.length} bytes`)
      }
    }
  })
})
