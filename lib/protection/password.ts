/**
 * `ctx.password`: hashes and checks the passwords of an application's users, as the panel does the admin's hardened
 * password.
 *
 * A hash is a string in PHC form, `$scrypt$ln=14,r=8,p=5$salt$key`: `ln` is the binary logarithm of N, salt and key are
 * base64 without padding. Where the crypto library has no scrypt, it is `$pbkdf2-sha256$i=600000$salt$key`. A stored
 * hash that is damaged, or too expensive, is refused before any work: write access to a database must not be enough to
 * keep the server busy.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { Passwords } from 'svc'
import {
  base64,
  keyBytes,
  maxMemoryBytes,
  newCost,
  pbkdf2Text,
  readPbkdf2,
  saltBytes,
  type KeyDerivation,
  type StoredKey,
} from '../access/key-derivation.ts'
import { normalPassword, passwordForms } from '../access/password.ts'
import { HttpError } from '../http/errors.ts'

const maxPasswordBytes = 1024
const [mostLn, mostR, mostP] = [17, 16, 16]
const phcPattern = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{43})$/

/** Makes `ctx.password` for one server. */
export function createPasswords(derivation: KeyDerivation): Passwords {
  return {
    async hash(password) {
      checkPassword(password)
      const salt = randomBytes(saltBytes)
      const cost = newCost()
      const key = await derivation.derive(normalPassword(password), salt, keyBytes, cost)
      if ('iterations' in cost) return pbkdf2Text(cost, salt, key)
      return `$scrypt$ln=${Math.log2(cost.N)},r=${cost.r},p=${cost.p}$${base64(salt)}$${base64(key)}`
    },
    async verify(password, stored) {
      checkPassword(password)
      const forms = passwordForms(password)
      if (stored === undefined) {
        for (const form of forms) await derivation.derive(form, randomBytes(saltBytes), keyBytes, newCost())
        return { ok: false, stale: false }
      }
      const { cost, salt, key } = readHash(stored)
      const isNew = isDeepStrictEqual(cost, newCost())
      for (const form of forms) {
        const ok = timingSafeEqual(await derivation.derive(form, salt, key.length, cost), key)
        if (ok) return { ok, stale: !isNew || form !== forms[0] }
      }
      return { ok: false, stale: !isNew }
    },
  }
}

function checkPassword(password: unknown): void {
  if (typeof password !== 'string') {
    const advice = 'a form without the field has undefined'
    throw new TypeError(`A password must be a string: it is of type ${typeof password}; ${advice}`)
  }
  if (Buffer.byteLength(password) <= maxPasswordBytes) return
  throw new HttpError(422, 'password_too_long', `A password has at most ${maxPasswordBytes} bytes`)
}

function readHash(stored: unknown): StoredKey {
  const withPbkdf2 = typeof stored === 'string' ? readPbkdf2(stored) : undefined
  if (withPbkdf2 !== undefined) return withPbkdf2
  const [, ln, r, p, salt = '', key = ''] = phcPattern.exec(typeof stored === 'string' ? stored : '') ?? []
  const cost = { N: 2 ** Number(ln), r: Number(r), p: Number(p) }
  if (ln === undefined || Number(ln) < 1 || cost.r < 1 || cost.p < 1) {
    throw new Error('Cannot check a password: the stored text is not a hash made by ctx.password.hash()')
  }
  if (Number(ln) > mostLn || cost.r > mostR || cost.p > mostP || 128 * cost.N * cost.r > maxMemoryBytes) {
    const found = `ln=${ln},r=${r},p=${p}`
    const most = `ln=${mostLn},r=${mostR},p=${mostP} and ${maxMemoryBytes / 2 ** 20} MiB`
    throw new Error(`Cannot check a password: the stored hash is too expensive: it has ${found}; the limit is ${most}`)
  }
  return { cost, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') }
}
