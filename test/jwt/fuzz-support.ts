// The seeded checks of tokens, claims and secrets, for any number of them.
import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { readKey } from '../../lib/jwt/keys.ts'
import type { Algorithm } from '../../lib/jwt/settings.ts'
import { checkClaims, verifyJws } from '../../lib/jwt/token.ts'
import { Seeded } from '../support/seeded.ts'
import { ed25519, hmacToken, p256, part, rsa, secret, signedToken } from './tokens.ts'

const rules = { issuer: 'me', audience: 'you', leeway_s: 0 }
const claims = { iss: 'me', aud: ['you'], exp: 2_000_000_000, sub: 'somebody' }
const asciiWithoutQuotes = /^[ !#-[\]-~]+$/

const wrongHeaders = [{ alg: 'none' }, { alg: 'HS256', crit: ['a'] }, { alg: 'hs256' }, { alg: 1 }, [], '{', '']
const edits: readonly ((token: string, random: Seeded) => string)[] = [
  (token, random) => replaceAt(token, random.integer(token.length), random.pick([...'AZaz09-_.+/= \0"\\é'])),
  (token, random) => replaceAt(token, random.integer(token.length), String.fromCharCode(random.integer(256))),
  (token, random) => token.slice(0, random.integer(token.length)),
  (token, random) => token.slice(random.integer(token.length)),
  (token, random) => token + random.pick(['.', '=', '==', 'A', ' ', '\n', '.A', token]),
  (token, random) => random.bytes(random.integer(8)).toString('latin1') + token,
  (token, random) => {
    const at = random.integer(token.length)
    return token.slice(0, at) + random.bytes(3).toString('base64url') + token.slice(at)
  },
  flipBit,
  flipBit,
  flipBit,
  (token, random) => {
    const parts = token.split('.')
    parts[random.integer(3)] = random.bytes(random.integer(40)).toString('base64url')
    return parts.join('.')
  },
  (token, random) => [part(random.pick(wrongHeaders)), ...token.split('.').slice(1)].join('.'),
  (token, random) => token.split('.').sort(() => random.next() - 0.5).join('.'),
  (_, random) => random.bytes(random.integer(60)).toString('latin1'),
]

/** Changes a token once, or a few times. */
function mutate(token: string, random: Seeded): string {
  let text = token
  for (let left = 1 + random.integer(3); left > 0; left -= 1) {
    text = random.pick(edits)(text === '' ? 'A' : text, random)
  }
  return text
}

/** Flips a bit of one part with valid encodings, which only the signature reveals. */
function flipBit(token: string, random: Seeded): string {
  const parts = token.split('.')
  const at = random.integer(parts.length)
  const bytes = Buffer.from(parts[at] as string, 'base64url')
  if (bytes.length > 0) bytes[random.integer(bytes.length)]! ^= 1 << random.integer(8)
  parts[at] = bytes.toString('base64url')
  return parts.join('.')
}

function replaceAt(text: string, at: number, by: string): string {
  return text.slice(0, at) + by + text.slice(at + 1)
}

const secretKey = createSecretKey(Buffer.from(secret))
const good = {
  HS256: [secretKey, hmacToken({ alg: 'HS256' }, claims)],
  RS256: [rsa.publicKey, signedToken('RS256', claims, rsa.privateKey)],
  ES256: [p256.publicKey, signedToken('ES256', claims, p256.privateKey)],
  EdDSA: [ed25519.publicKey, signedToken('EdDSA', claims, ed25519.privateKey)],
} as const

/** Mutates a valid token of an algorithm: every mutated one is refused, and none throws. */
export function checkMutatedTokens(algorithm: keyof typeof good, count: number): void {
  const [key, token] = good[algorithm]
  const random = new Seeded(count + algorithm.length)
  const allowed: readonly Algorithm[] = [algorithm]
  const problems = new Map<string, number>()
  for (let done = 0; done < count; ) {
    const text = mutate(token, random)
    if (text === token) continue
    const reading = verifyJws(text, allowed, key)
    if ('payload' in reading) return assert.fail(`took ${JSON.stringify(text)}`)
    problems.set(reading.problem, (problems.get(reading.problem) ?? 0) + 1)
    done += 1
  }
  for (const problem of problems.keys()) assert.match(problem, asciiWithoutQuotes)
  assert.equal(problems.size, 6, [...problems].join('; '))
  const wrongSignatures = problems.get('the signature of the token is wrong') ?? 0
  assert.ok(wrongSignatures > count / 20, `${wrongSignatures} came as far as the signature`)
  assert.ok('payload' in verifyJws(token, allowed, key))
}

/** Checks signed claims: accepted ones have the right shape. */
export function checkSignedClaims(count: number): void {
  const random = new Seeded(7)
  const values = ['me', 'you', '', 0, -1, 1e9, 2e9, 1e308, Infinity, NaN, null, true, [], ['you'], ['you', 1], {}, [[]]]
  const nowMs = 1_500_000_000_000
  for (let at = 0; at < count; at += 1) {
    const made = {
      iss: random.pick(values),
      aud: random.pick(values),
      exp: random.pick(values),
      nbf: random.pick([undefined, ...values]),
    }
    const problem = checkClaims(made, rules, nowMs)
    if (problem !== undefined) {
      assert.match(problem, asciiWithoutQuotes)
      continue
    }
    const { iss, aud, exp, nbf } = made
    assert.deepEqual([iss, String(aud), typeof exp], ['me', 'you', 'number'])
    assert.ok(Number(exp) > 1.5e9 && Number.isFinite(exp))
    assert.ok(nbf === undefined || (typeof nbf === 'number' && nbf <= 1.5e9))
  }
}

/** Reads random bytes, as base64, base64url and hex: each is a secret. */
export function checkRandomSecrets(count: number): void {
  const random = new Seeded(4)
  for (let round = 0; round < count; round += 1) {
    const bytes = random.bytes(32 + (round % 33))
    for (const encoding of ['base64', 'base64url', 'hex'] as const) {
      const text = bytes.toString(encoding)
      assert.ok('key' in readKey(text, ['HS256']), text)
    }
  }
}
