import assert from 'node:assert/strict'
import { it } from 'node:test'
import { checkClaims, type ClaimRules } from '../../lib/jwt/token.ts'

const nowS = 1_700_000_000
const noRules: ClaimRules = { issuer: '', audience: '', leeway_s: 0 }
const leeway = { leeway_s: 10 }
const issuer = { issuer: 'me' }
const audience = { audience: 'you' }

const expired = 'the token has expired'
const early = 'the token is not valid yet'
const otherIssuer = 'the token is from another issuer'
const otherAudience = 'the token is for another audience'
const rows: readonly (readonly [claims: string, rules: Partial<ClaimRules>, problem: string | undefined])[] = [
  ['{}', {}, undefined],
  ['{"iat": "x", "iss": 1, "aud": {}, "sub": 2}', {}, undefined],
  [`{"exp": ${nowS + 1}}`, {}, undefined],
  [`{"exp": ${nowS + 0.5}}`, {}, undefined],
  [`{"exp": ${nowS}}`, {}, expired],
  [`{"exp": ${nowS - 0.001}}`, {}, expired],
  ['{"exp": 0}', {}, expired],
  ['{"exp": -1e300}', {}, expired],
  ['{"exp": 1e300}', {}, undefined],
  [`{"exp": ${nowS - 9}}`, leeway, undefined],
  [`{"exp": ${nowS - 10}}`, leeway, expired],
  ['{"exp": "1800000000"}', {}, 'exp is not a number'],
  ['{"exp": null}', {}, 'exp is not a number'],
  ['{"exp": [1800000000]}', {}, 'exp is not a number'],
  ['{"exp": true}', {}, 'exp is not a number'],
  ['{"exp": 1e400}', {}, 'exp is not a number'],
  [`{"nbf": ${nowS}}`, {}, undefined],
  [`{"nbf": ${nowS + 0.5}}`, {}, early],
  [`{"nbf": ${nowS + 10}}`, leeway, undefined],
  [`{"nbf": ${nowS + 10.5}}`, leeway, early],
  ['{"nbf": ""}', {}, 'nbf is not a number'],
  ['{"nbf": -1e400}', {}, 'nbf is not a number'],
  [`{"nbf": ${nowS - 5}, "exp": ${nowS + 5}}`, {}, undefined],
  ['{"iss": "me"}', issuer, undefined],
  ['{"iss": "me "}', issuer, otherIssuer],
  ['{"iss": ["me"]}', issuer, otherIssuer],
  ['{}', issuer, otherIssuer],
  ['{"aud": "you"}', audience, undefined],
  ['{"aud": ["they", "you"]}', audience, undefined],
  ['{"aud": ["they"]}', audience, otherAudience],
  ['{"aud": []}', audience, otherAudience],
  ['{"aud": ["you", 1]}', audience, otherAudience],
  ['{"aud": {"0": "you"}}', audience, otherAudience],
  ['{"aud": "you, they"}', audience, otherAudience],
  ['{}', audience, otherAudience],
]

for (const [claims, rules, problem] of rows) {
  it(`${problem ?? 'takes'}: ${claims} with ${JSON.stringify(rules)}`, () => {
    const parsed = JSON.parse(claims) as Record<string, unknown>
    assert.equal(checkClaims(parsed, { ...noRules, ...rules }, nowS * 1000), problem)
  })
}
