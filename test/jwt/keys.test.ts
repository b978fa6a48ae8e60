import assert from 'node:assert/strict'
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { readKey } from '../../lib/jwt/keys.ts'
import type { Algorithm } from '../../lib/jwt/settings.ts'
import { verifyJws } from '../../lib/jwt/token.ts'
import { makeCertificate } from '../support/certificate.ts'
import { checkRandomSecrets } from './fuzz-support.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { ed25519, hmacToken, jwk, p256, pem, rsa, secret, signedToken } from './tokens.ts'

type Names = readonly [Algorithm, ...Algorithm[]]
const hs256: Names = ['HS256']
const rs256: Names = ['RS256']
const es256: Names = ['ES256']
const edDsa: Names = ['EdDSA']

const shortRsa = generateKeyPairSync('rsa', { modulusLength: 1024 })
const pss = generateKeyPairSync('rsa-pss', { modulusLength: 2048 })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const ed448 = generateKeyPairSync('ed448')

const octets = { kty: 'oct', k: Buffer.from(secret).toString('base64url') }
const privateWarning = 'is a private key: its public half is used; keep the private one with the issuer only'
const withParameters =
  '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n' +
  String(p256.privateKey.export({ type: 'sec1', format: 'pem' }))

const tokens = {
  HS256: hmacToken({ alg: 'HS256' }, {}),
  RS256: signedToken('RS256', {}, rsa.privateKey),
  ES256: signedToken('ES256', {}, p256.privateKey),
  EdDSA: signedToken('EdDSA', {}, ed25519.privateKey),
}

describe('an accepted key', () => {
  const rows: readonly (readonly [what: string, text: string, names: Names, warnings: readonly string[]])[] = [
    ['a secret', secret, ['HS256', 'HS384', 'HS512'], []],
    ['a secret JWK', JSON.stringify(octets), hs256, []],
    ['a secret JWK for this use', JSON.stringify({ ...octets, use: 'sig', alg: 'HS256', kid: 'a' }), hs256, []],
    ['an RSA PEM', pem(rsa.publicKey), rs256, []],
    ['an RSA PEM of the older form', String(rsa.publicKey.export({ type: 'pkcs1', format: 'pem' })), rs256, []],
    ['an RSA PEM after a comment', `# of the issuer\r\n${pem(rsa.publicKey).replaceAll('\n', '\r\n')}`, rs256, []],
    ['an RSA JWK', jwk(rsa.publicKey), rs256, []],
    ['an EC PEM', pem(p256.publicKey), es256, []],
    ['an EC JWK', ` \n${jwk(p256.publicKey, { alg: 'ES256', use: 'sig' })}`, es256, []],
    ['an Ed25519 PEM', pem(ed25519.publicKey), edDsa, []],
    ['an Ed25519 JWK', jwk(ed25519.publicKey), edDsa, []],
    ['a private RSA PEM', pem(rsa.privateKey), rs256, [privateWarning]],
    ['a private RSA JWK', jwk(rsa.privateKey), rs256, [privateWarning]],
    ['a private EC PEM', pem(p256.privateKey), es256, [privateWarning]],
    ['a private EC PEM as openssl writes it', withParameters, es256, [privateWarning]],
    ['a private EC JWK', jwk(p256.privateKey), es256, [privateWarning]],
    ['a private Ed25519 JWK', jwk(ed25519.privateKey), edDsa, [privateWarning]],
  ]
  for (const [what, text, names, warnings] of rows) {
    it(`is ${what}`, () => {
      const reading = readKey(text, names)
      assert.ok('key' in reading, JSON.stringify(reading))
      assert.deepEqual(reading.warnings, warnings)
      assert.notEqual(reading.key.type, 'private')
      assert.deepEqual(verifyJws(tokens[names[0] as keyof typeof tokens], names, reading.key), { payload: {} })
    })
  }

  it('may be a short secret, with a warning that does not quote it', () => {
    const wanted: readonly (readonly [Names, number])[] = [
      [['HS256'], 32],
      [['HS384'], 48],
      [['HS512'], 64],
    ]
    for (const [names, bytes] of wanted) {
      const reading = readKey('é'.repeat(bytes / 2 - 1), names)
      const warning = `has ${bytes - 2} bytes: ${names[0]} needs at least ${bytes} (RFC 7518, section 3.2)`
      assert.deepEqual('warnings' in reading && reading.warnings, [warning])
      const enough = readKey('é'.repeat(bytes / 2), names)
      assert.deepEqual('warnings' in enough && enough.warnings, [])
    }
    const several = readKey('x'.repeat(40), ['HS256', 'HS384'])
    const warning = 'has 40 bytes: HS384 needs at least 48 (RFC 7518, section 3.2)'
    assert.deepEqual('warnings' in several && several.warnings, [warning])
  })

  it('may be any random bytes as base64, base64url and hex', () => checkRandomSecrets(300))

  it('may be a secret of any characters that is neither JSON nor PEM', () => {
    for (const text of ['ssh-', 'MIIB', 'a'.repeat(44), 'a"quoted"', '1[1]', ' a ', 'AAAA', 'AAAAB3NzaC', 'null', 'é\u0000']) {
      assert.ok('key' in readKey(text, hs256), text)
    }
  })
})

describe('a refused key', () => {
  const advice = 'name the algorithm of that key in setup.jwt.algorithms'
  const asPem = `must be a secret for an HMAC: it is a PEM; ${advice}`
  const asKey = `must be a secret for an HMAC: it is a public key; ${advice}`
  const spki = rsa.publicKey.export({ type: 'spki', format: 'der' })
  const otherJson = 'must be one JWK, or a secret: it begins like other JSON'
  const garbage = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'
  const locked = String(rsa.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'a' }))
  const unreadable = 'must be a readable key without a passphrase: this'
  const rows: readonly (readonly [what: string, text: string, names: Names, problem: string | RegExp])[] = [
    ['an RSA public key as an HMAC secret', pem(rsa.publicKey), hs256, asPem],
    ['a private key as an HMAC secret', pem(ed25519.privateKey), hs256, asPem],
    ['a PEM within other text as an HMAC secret', `x ${pem(p256.publicKey)}`, hs256, asPem],
    ['a PEM without its first line as an HMAC secret', pem(rsa.publicKey).replace(/^.*\n/, ''), hs256, asPem],
    ['a PEM without its last line as an HMAC secret', pem(rsa.publicKey).replace(/-----END.*\n/, ''), hs256, asPem],
    ['a PEM without both as an HMAC secret', pem(p256.publicKey).replace(/-----.*-----\n/g, ''), hs256, asKey],
    ['a JWK in a list as an HMAC secret', ` [${jwk(rsa.publicKey)}]`, hs256, otherJson],
    ['a PEM without its lines in a JSON text', '\n"MIIB"', hs256, otherJson],
    ['an SSH key of the longer form as an HMAC secret', '---- BEGIN SSH2 PUBLIC KEY ----\nAAAA', hs256, asPem],
    ['an RSA JWK as an HMAC secret', jwk(rsa.publicKey), hs256, 'must be a JWK with kty oct for HS256: its kty is RSA'],
    ['a secret JWK for RS256', JSON.stringify(octets), rs256, 'must be a JWK with kty RSA for RS256: its kty is oct'],
    ['a JWK without kty', '{}', es256, 'must be a JWK with kty EC for ES256: its kty is of type undefined'],
    ['a JWK for encryption', jwk(rsa.publicKey, { use: 'enc' }), rs256, / with use sig for RS256: its use is enc$/],
    ['a JWK of another algorithm', jwk(rsa.publicKey, { alg: 'PS256' }), rs256, /alg RS256 for RS256: .* is PS256$/],
    [
      'a JWK of one algorithm for two',
      JSON.stringify({ ...octets, alg: 'HS256' }),
      ['HS256', 'HS512'],
      'must be a JWK with alg HS512 for HS256, HS512: its alg is HS256',
    ],
    ['a set of keys', '{"keys": []}', rs256, 'must be one key: it is a set of keys; give one of its members'],
    ['a JWK that is no JSON', '{"kty": "oct",}', hs256, 'must be a JWK, since it begins with {: it is not valid JSON'],
    ['a secret JWK without k', '{"kty": "oct"}', hs256, 'must have its secret as base64url in k'],
    ['a secret JWK with padding', '{"kty": "oct", "k": "YQ=="}', hs256, 'must have its secret as base64url in k'],
    ['a secret JWK with a public key', JSON.stringify({ kty: 'oct', k: spki.toString('base64url') }), hs256, asKey],
    ['an empty secret', '{"kty": "oct", "k": ""}', hs256, 'must be a secret: it is empty'],
    ['a secret for RS256', secret, rs256, 'must be a public key for RS256: it is neither a PEM nor a JWK'],
    ['an RSA key of 1024 bits', pem(shortRsa.publicKey), rs256, /^must be an RSA key of at least 2048 .* has 1024$/],
    ['an RSA JWK of 1024 bits', jwk(shortRsa.publicKey), rs256, /^must be an RSA key of at least 2048 bits/],
    ['an RSA key for PSS', pem(pss.publicKey), rs256, 'must be a key of kind RSA: it is of kind rsa-pss'],
    ['an RSA key for ES256', pem(rsa.publicKey), es256, 'must be a key of kind P-256: it is of kind RSA'],
    ['an EC key for RS256', pem(p256.publicKey), rs256, 'must be a key of kind RSA: it is of kind P-256'],
    ['a key of another curve', pem(p384.publicKey), es256, 'must be a key of kind P-256: it is of kind EC secp384r1'],
    ['a JWK of another curve', jwk(p384.publicKey), es256, 'must be a key of kind P-256: it is of kind EC secp384r1'],
    ['an Ed448 key', pem(ed448.publicKey), edDsa, 'must be a key of kind Ed25519: it is of kind ed448'],
    ['an Ed25519 key for ES256', pem(ed25519.publicKey), es256, 'must be a key of kind P-256: it is of kind Ed25519'],
    ['a PEM that is damaged', garbage, rs256, new RegExp(`^${unreadable} PEM cannot be read \\(`)],
    ['a PEM behind a passphrase', locked, rs256, new RegExp(`^${unreadable} PEM cannot be read \\(`)],
    ['a point off the curve', '{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}', es256, new RegExp(`^${unreadable} JWK`)],
    ['a JWK without its members', '{"kty":"RSA"}', rs256, new RegExp(`^${unreadable} JWK`)],
  ]
  for (const [what, text, names, expected] of rows) {
    it(`is ${what}`, () => {
      const reading = readKey(text, names)
      assert.ok('problem' in reading)
      if (typeof expected === 'string') assert.equal(reading.problem, expected)
      else assert.match(reading.problem, expected)
    })
  }

  const encoded: Readonly<Record<string, Uint8Array | string>> = {
    'an RSA key': spki,
    'an EC key': p256.publicKey.export({ type: 'spki', format: 'der' }),
    'an Ed25519 key': ed25519.publicKey.export({ type: 'spki', format: 'der' }),
    'a key of another curve': p384.publicKey.export({ type: 'spki', format: 'der' }),
    'an RSA key of the older form': rsa.publicKey.export({ type: 'pkcs1', format: 'der' }),
    'a PEM': pem(rsa.publicKey),
    'a JWK': jwk(p256.publicKey),
    'a set of keys': `{"keys": [${jwk(p256.publicKey)}]}`,
    'an SSH key': sshKey('ssh-ed25519'),
    'an SSH key of an older kind': sshKey('ssh-rsa'),
    'an SSH key of a curve': sshKey('ecdsa-sha2-nistp256'),
    'an SSH key of a token': sshKey('sk-ssh-ed25519@openssh.com'),
    'an SSH key of a token and a curve': sshKey('sk-ecdsa-sha2-nistp256@openssh.com'),
    'the line of an SSH key': sshLine('ssh-ed25519'),
  }
  for (const [what, key] of Object.entries(encoded)) {
    it(`is ${what} in base64, base64url or hex as an HMAC secret`, () => {
      for (const text of encodings(Buffer.from(key))) assert.deepEqual(readKey(text, hs256), { problem: asKey }, text)
    })
  }

  it('is a certificate in base64, base64url or hex as an HMAC secret', () => {
    const certificate = readFileSync(makeCertificate(temporaryFolder(), 'issuer').cert, 'utf8')
    assert.deepEqual(readKey(certificate, hs256), { problem: asPem })
    for (const bytes of [new X509Certificate(certificate).raw, Buffer.from(certificate)]) {
      for (const text of encodings(bytes)) assert.deepEqual(readKey(text, hs256), { problem: asKey }, text)
    }
  })

  it('is the line of an SSH key as an HMAC secret, with white space or options before it too', () => {
    for (const kind of ['ssh-rsa', 'ssh-ed25519', 'ecdsa-sha2-nistp256', 'sk-ssh-ed25519@openssh.com']) {
      const line = sshLine(kind)
      const texts = [line, `\t ${line}`, `no-pty,command="echo a b" ${line}`, line.replace(' ', '  '), `h ${line}`]
      for (const text of texts) {
        assert.deepEqual(readKey(text, hs256), { problem: asKey }, text)
      }
    }
  })
})

/** Encodes bytes as texts, with the line breaks and markers that programs write. */
function encodings(bytes: Buffer): readonly string[] {
  const hex = bytes.toString('hex')
  const base64 = bytes.toString('base64')
  const inLines = base64.replaceAll(/.{64}/g, '$&\r\n')
  const marked = [`0x${hex.toUpperCase()}`, `\n${hex.replaceAll(/../g, '$&:')}`]
  return [base64, inLines, ` ${base64} me@home\n`, bytes.toString('base64url'), hex, ...marked]
}

/** The bytes of an SSH key of a kind (RFC 4253, section 6.6); the rest does not matter. */
function sshKey(kind: string): Buffer {
  return Buffer.concat([Buffer.of(0, 0, 0, kind.length), Buffer.from(kind), Buffer.of(0, 0, 0, 32), Buffer.alloc(32, 7)])
}

function sshLine(kind: string): string {
  return `${kind} ${sshKey(kind).toString('base64')} me@home`
}
