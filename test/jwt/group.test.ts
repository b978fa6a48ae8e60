import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { createJwtGroup } from '../../lib/composition/jwt-group.ts'
import { silentLogger } from '../../lib/log/logger.ts'
import type { BuiltInGroup } from '../../lib/chain/settings.ts'
import { startChain, type Actions } from '../flash/chain-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { hmacToken, jwk, p256, part, pem, rsa, secret, signedToken } from './tokens.ts'

const nowS = 1_700_000_000
const now = (): number => nowS * 1000
const actions: Actions = { '/api SVC_MwJwt': ({ state }) => state['jwt'] }
const setup = { jwt: { key: secret } }
const token = (claims: Readonly<Record<string, unknown>> = {}): string => hmacToken({ alg: 'HS256' }, claims)
const bearer = (text: string): { headers: Record<string, string> } => ({ headers: { authorization: `Bearer ${text}` } })

async function groupIn(folder: string): Promise<BuiltInGroup> {
  const group = createJwtGroup({ folder, publicFolder: join(folder, 'public'), now, log: () => silentLogger })
  await group.load?.()
  return group
}

describe('SVC_MwJwt', () => {
  it('admits a token and passes its claims on', async (t) => {
    const { send } = await startChain(t, actions, { setup, now })
    const claims = { sub: 'ada', exp: nowS + 1, nbf: nowS, roles: ['a'] }
    for (const scheme of ['Bearer ', 'bearer ', 'BEARER    ']) {
      const answer = await send('/api', { headers: { authorization: scheme + token(claims) } })
      assert.deepEqual([answer.status, answer.json()], [200, claims])
      assert.equal(answer.headers['www-authenticate'], undefined)
    }
  })

  it('requests a missing token, in JSON', async (t) => {
    const { send, lines } = await startChain(t, actions, { setup, now })
    const others = ['', 'Basic YTpi', token(), `Token ${token()}`, `Bearer${token()}`, `Bearer\t${token()}`]
    for (const headers of [{}, ...others.map((authorization) => ({ authorization, accept: 'text/html' }))]) {
      const answer = await send('/api', { headers })
      assert.deepEqual([answer.status, answer.headers['www-authenticate']], [401, 'Bearer'])
      const detail = 'Send a token: Authorization: Bearer <token>'
      assert.deepEqual(answer.json(), { error: 'unauthorized', detail })
    }
    assert.equal(lines[0], 'DEBUG worker_http GET /api: SVC_MwJwt: Send a token: Authorization: Bearer <token>')
  })

  const wrong: readonly (readonly [what: string, text: string, problem: string])[] = [
    ['no text', '', 'the token does not have three parts with dots between them'],
    ['two tokens', `${token()} ${token()}`, 'the token does not have three parts with dots between them'],
    ['another text', 'abc', 'the token does not have three parts with dots between them'],
    ['another secret', hmacToken({ alg: 'HS256' }, {}, 'x'), 'the signature of the token is wrong'],
    ['a token in quotes', `"${token()}"`, 'a part of the token is not base64url'],
    ['a token that is too long', token({ a: 'x'.repeat(7000) }), 'the token is longer than 8192 bytes'],
    ['one that has expired', token({ exp: nowS }), 'the token has expired'],
    ['one that is not valid yet', token({ nbf: nowS + 1 }), 'the token is not valid yet'],
    ['a claim of a wrong type', token({ exp: '1' }), 'exp is not a number'],
    ['none', `${part({ alg: 'none' })}.e30.`, 'the algorithm of the token is not accepted here'],
  ]
  it('refuses an invalid token with the reason, in JSON', async (t) => {
    const { send, lines } = await startChain(t, actions, { setup, now })
    for (const [what, text, problem] of wrong) {
      const answer = await send('/api', bearer(text))
      assert.deepEqual([answer.status, answer.json()], [401, { error: 'invalid_token', detail: problem }], what)
      const challenge = `Bearer error="invalid_token", error_description="${problem}"`
      assert.equal(answer.headers['www-authenticate'], challenge)
      assert.equal(lines.at(-1), `DEBUG worker_http GET /api: SVC_MwJwt: ${problem}`)
    }
    assert.ok(lines.every((line) => !line.includes('eyJ')), 'no token is in the log')
  })

  it('refuses two Authorization fields', async (t) => {
    const { send } = await startChain(t, actions, { setup, now })
    for (const other of [token(), 'x']) {
      const answer = await send('/api', { headers: { authorization: [`Bearer ${token()}`, `Bearer ${other}`] } })
      const detail = 'there is more than one Authorization field'
      assert.deepEqual([answer.status, answer.json()], [401, { error: 'invalid_token', detail }])
    }
  })

  it('requires issuer and audience if set, and allows leeway', async (t) => {
    const jwt = { key: secret, issuer: 'me', audience: 'you', leeway_s: 10 }
    const { send } = await startChain(t, actions, { setup: { jwt }, now })
    const statusOf = async (claims: Readonly<Record<string, unknown>>): Promise<number> =>
      (await send('/api', bearer(token(claims)))).status
    assert.equal(await statusOf({ iss: 'me', aud: ['they', 'you'], exp: nowS - 9 }), 200)
    assert.equal(await statusOf({ iss: 'me', aud: 'you', exp: nowS - 10 }), 401)
    assert.equal(await statusOf({ iss: 'I', aud: 'you' }), 401)
    assert.equal(await statusOf({ iss: 'me', aud: 'they' }), 401)
  })

  it('fails without a key until a reload provides one, which is used until the next', async (t) => {
    const { send, lines, configure } = await startChain(t, actions, { setup: { jwt: {} }, now })
    const answer = await send('/api', { headers: { ...bearer(token()).headers, accept: 'application/json' } })
    assert.deepEqual([answer.status, answer.json()], [500, { error: 'jwt_requires_key' }])
    const advice = 'set key or key_file in setup.jwt of the middleware configuration'
    assert.deepEqual(lines, [`ERROR jwt_requires_key SVC_MwJwt on route "api" has no key: ${advice}`])
    configure('jwt', { key: secret })
    assert.equal((await send('/api', bearer(token()))).status, 200)
    configure('jwt', { algorithms: ['ES256'], key: jwk(p256.publicKey) })
    assert.equal((await send('/api', bearer(token()))).status, 401)
    assert.equal((await send('/api', bearer(signedToken('ES256', {}, p256.privateKey)))).status, 200)
    configure('jwt', {})
    assert.equal((await send('/api', bearer(token()))).status, 500)
  })

  it('does not apply abandoned settings', async (t) => {
    const { send, prepare } = await startChain(t, actions, { setup, now })
    prepare('jwt', { key: 'another' }).abandon?.()
    assert.equal((await send('/api', bearer(token()))).status, 200)
  })
})

describe('setup.jwt', () => {
  it('is not ready without a key', async () => {
    const group = await groupIn('/')
    const { unready, warnings } = group.prepare(undefined)
    assert.deepEqual([unready, warnings], ['setup.jwt has no key and no key_file', []])
    assert.equal(group.prepare({ key: secret }).unready, undefined)
  })

  it('reads the key from a file, without one trailing line break', async (t) => {
    const folder = temporaryFolder()
    const rows = [
      [secret, true],
      [`${secret}\n`, true],
      [`${secret}\r\n`, true],
      [`\ufeff${secret}\n`, true],
      [`${secret}\n\n`, false],
      [` ${secret}`, false],
    ] as const
    const { send, configure } = await startChain(t, actions, { setup: { jwt: {} }, folder, now })
    for (const [text, passes] of rows) {
      writeFileSync(join(folder, 'key'), text)
      configure('jwt', { key_file: 'key' })
      assert.equal((await send('/api', bearer(token()))).status, passes ? 200 : 401, JSON.stringify(text))
    }
    rmSync(join(folder, 'key'))
    assert.equal((await send('/api', bearer(token()))).status, 401, 'the file is read once')
    writeFileSync(join(folder, 'key.pem'), pem(rsa.publicKey))
    configure('jwt', { algorithms: ['RS256'], key_file: join(folder, 'key.pem') })
    assert.equal((await send('/api', bearer(signedToken('RS256', {}, rsa.privateKey)))).status, 200)
  })

  it('warns of a short secret, a private key and unknown keys', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'key'), pem(rsa.privateKey))
    const rows: readonly (readonly [unknown, string])[] = [
      [{ key: 'short' }, 'setup.jwt.key has 5 bytes: HS256 needs at least 32 (RFC 7518, section 3.2)'],
      [
        { algorithms: ['RS256'], key_file: 'key' },
        'setup.jwt.key_file is a private key: its public half is used; keep the private one with the issuer only',
      ],
      [{ key: secret, isuer: 'me' }, 'unknown key setup.jwt.isuer: did you mean issuer?'],
    ]
    const group = await groupIn(folder)
    for (const [given, warning] of rows) assert.deepEqual(group.prepare(given).warnings, [warning])
  })

  it('refuses invalid settings', async () => {
    const folder = temporaryFolder()
    const group = await groupIn(folder)
    writeFileSync(join(folder, 'empty'), '\n')
    writeFileSync(join(folder, 'binary'), Buffer.from([0xff, 0xfe, 0xfd]))
    const names = 'HS256, HS384, HS512, RS256, ES256, EdDSA'
    const rows: readonly (readonly [given: unknown, message: string | RegExp])[] = [
      [[], 'setup.jwt must be an object with algorithms, key, key_file, issuer, audience, leeway_s'],
      [{ algorithms: [] }, `setup.jwt.algorithms must name at least one of ${names}: it is empty`],
      [{ algorithms: ['none'] }, `setup.jwt.algorithms has a wrong entry 1: it must be one of ${names}, and is "none"`],
      [{ algorithms: ['hs256'] }, /has a wrong entry 1/],
      [{ algorithms: 'HS256' }, /must be a list of strings/],
      [
        { algorithms: ['HS256', 'HS512', 'RS256'] },
        'setup.jwt.algorithms must all use one kind of key: HS256 and RS256 take different keys',
      ],
      [{ algorithms: ['RS256', 'ES256'] }, /use one kind of key: RS256 and ES256/],
      [{ key: secret, key_file: 'key' }, 'setup.jwt must have key or key_file: it has both; leave one out'],
      [{ key: 1 }, 'setup.jwt.key must be a string: it is a number'],
      [{ key_file: 'a\0b' }, /^setup\.jwt\.key_file must be a path without control characters: it is /],
      [{ key_file: 'absent' }, /^setup\.jwt\.key_file must be a file that can be read: ENOENT.*absent/],
      [{ key_file: 'public/key' }, /^setup\.jwt\.key_file must not be in paths\.public, .* it is public\/key$/],
      [{ key_file: '.' }, /^setup\.jwt\.key_file must be a file that can be read: EISDIR/],
      [{ key_file: 'empty' }, 'setup.jwt.key_file must be a secret: it is empty'],
      [{ key_file: 'binary' }, /^setup\.jwt\.key_file must be UTF-8 text: .*binary is not; write .* as a JWK/],
      [{ key: pem(rsa.publicKey) }, /^setup\.jwt\.key must be a secret for an HMAC: it is a PEM; /],
      [{ algorithms: ['RS256'], key: secret }, /^setup\.jwt\.key must be a public key for RS256: it is neither/],
      [{ key: secret, leeway_s: 3601 }, 'setup.jwt.leeway_s must be 0 to 3600: it is 3601'],
    ]
    for (const [given, message] of rows) {
      assert.throws(() => group.prepare(given), { name: 'SettingsError', message }, JSON.stringify(given))
    }
  })

  it('includes no secret in a message', async () => {
    const group = await groupIn('/')
    for (const given of [{ key: secret, key_file: 'x' }, { algorithms: ['RS256'], key: secret }, { key: [secret] }]) {
      const hidesSecret = (error: unknown): boolean => error instanceof Error && !error.message.includes('sss')
      assert.throws(() => group.prepare(given), hidesSecret)
    }
  })
})
