/** Signed things: none but those that the server made may pass, whatever is done to them. Cursors of streams, too. */
import assert from 'node:assert/strict'
import { createSecretKey } from 'node:crypto'
import { isAdminCookie, makeAdminCookie } from '../../../lib/access/cookie.ts'
import { createCsrfTokens } from '../../../lib/csrf/token.ts'
import { readSince, readStreamStart } from '../../../lib/events/cursor.ts'
import type { FullContext } from '../../support/context.ts'
import { HttpError } from '../../../lib/http/errors.ts'
import { checkClaims, verifyJws } from '../../../lib/jwt/token.ts'
import { createResourceTokens } from '../../../lib/tokens/resource-id.ts'
import { hmacToken, secret } from '../../jwt/tokens.ts'
import type { Seeded } from '../../support/seeded.ts'
import { changed, odd, pieces } from '../mutate.ts'
import type { Input, Target } from '../target.ts'

const nowMs = 1_800_000_000_000
const keys = ['a key of the fuzzer', 'the one before']
const now = (): number => nowMs

const resourceTokens = createResourceTokens({ keys, now })
const ids = ['42', '', 'a|b', 'é😀', '__proto__']
const idOf = new Map(ids.map((id) => [resourceTokens.make(id), id]))

const csrfTokens = createCsrfTokens({ keys, now })
const goodCsrf = new Set([csrfTokens.make(), csrfTokens.make()])

const cookieRules = { secret: 'the secret', lifetimeMinutes: 60, nowMs }
const goodCookies = new Map([false, true].map((hardened) => [makeAdminCookie({ ...cookieRules, hardened }), hardened]))

const jwtKey = createSecretKey(Buffer.from(secret))
const claims = { iss: 'me', aud: ['you'], exp: 2_000_000_000, sub: '__proto__' }
const goodJwts = new Set([hmacToken({ alg: 'HS256' }, claims), hmacToken({ alg: 'HS256', typ: 'JWT' }, { ...claims, exp: 1 })])

function target(name: string, share: number, good: readonly string[], check: (token: string) => void): Target {
  return {
    name,
    share,
    make: (seeded) => [someToken(seeded, good)],
    check: ([token = '']) => check(token),
  }
}

/** The targets: one for each kind of token, and the cursors. */
export const tokens: readonly Target[] = [
  target('resource-tokens', 30, [...idOf.keys()], (token) => {
    assert.equal(resourceTokens.read(token), idOf.get(token) ?? '')
  }),
  target('csrf-tokens', 30, [...goodCsrf], (token) => {
    const verdict = csrfTokens.check(token, 60)
    assert.equal(verdict === 'ok', goodCsrf.has(token))
    assert.ok(['ok', 'malformed', 'expired', 'signature'].includes(verdict))
  }),
  target('admin-cookies', 30, [...goodCookies.keys()], (token) => {
    for (const hardened of [false, true]) {
      assert.equal(isAdminCookie(token, { ...cookieRules, hardened }), goodCookies.get(token) === hardened)
    }
  }),
  target('jwt', 30, [...goodJwts], (token) => {
    const reading = verifyJws(token, ['HS256'], jwtKey)
    assert.equal('payload' in reading, goodJwts.has(token))
    if ('problem' in reading) assert.match(reading.problem, /^[ !#-[\]-~]+$/)
    else checkClaims(reading.payload, { issuer: 'me', audience: 'you', leeway_s: 0 }, nowMs)
  }),
  {
    name: 'cursors',
    share: 30,
    make: (seeded): Input => [pieces(seeded, ['0', '7', '-', '+', '.', ' ', 'e', 'x', '٣', '9'.repeat(20), '&since=', ...odd], 5)],
    check: ([text = '']) => checkCursor(text),
  },
]

function someToken(seeded: Seeded, good: readonly string[]): string {
  const token = seeded.pick(good)
  const other = seeded.pick(good)
  const [one = '', two = ''] = [token.split(/[.:]/)[0], other.split(/[.:]/)[1]]
  switch (seeded.integer(8)) {
    case 0:
      return token
    case 1:
      return `${one}.${two}`
    case 2:
      return `${one}:${two}`
    case 3:
      return seeded.bytes(seeded.integer(60)).toString(seeded.pick(['latin1', 'base64', 'hex']))
    default:
      return changed(seeded, token, 1 + seeded.integer(3))
  }
}

/** A cursor is a whole number from 0, in digits alone, and is there once. */
function checkCursor(text: string): void {
  const parts = { rawQuery: `?since=${text}`, header: () => text }
  const ctx = parts as unknown as FullContext // these two members are all that is read
  const values = new URLSearchParams(parts.rawQuery).getAll('since')
  const since = values.length === 1 && /^[0-9]+$/.test(values[0] as string) ? Math.min(Number(values[0]), Number.MAX_SAFE_INTEGER) : undefined
  assert.equal(numberOrRefusal(() => readSince(ctx)), since)
  const isId = /^[0-9]+$/.test(text)
  const id = isId ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : since
  assert.equal(numberOrRefusal(() => readStreamStart(ctx).cursor), id)
}

function numberOrRefusal(take: () => number | undefined): number | undefined {
  try {
    return take()
  } catch (error) {
    assert.ok(error instanceof HttpError && error.status === 400, String(error))
    return undefined
  }
}
