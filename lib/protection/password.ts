/**
 * `ctx.password`: hashes and checks the passwords of an application's users, with the scrypt of the admin's hardened
 * password.
 *
 * A hash is a string in PHC form, `$scrypt$ln=14,r=8,p=5$salt$key`: `ln` is the binary logarithm of N, salt and key are
 * base64 without padding. A stored hash that is damaged, or too expensive, is refused before any work: write access to
 * a database must not be enough to keep the server busy.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Passwords } from 'svc'
import {
  costOfNew,
  keyBytes,
  maxMemoryBytes,
  normalPassword,
  passwordForms,
  saltBytes,
  type Scrypt,
  type ScryptCost,
} from '../access/password.ts'
import { HttpError } from '../http/errors.ts'

interface StoredHash {
  readonly cost: ScryptCost
  readonly salt: Buffer
  readonly key: Buffer
}

const maxPasswordBytes = 1024
const [mostLn, mostR, mostP] = [17, 16, 16]
const phcPattern = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{43})$/

/** Makes `ctx.password` for one server. */
export function createPasswords(scrypt: Scrypt): Passwords {
  return {
    async hash(password) {
      checkPassword(password)
      const salt = randomBytes(saltBytes)
      const key = await scrypt.derive(normalPassword(password), salt, keyBytes, costOfNew)
      const { N, r, p } = costOfNew
      return `$scrypt$ln=${Math.log2(N)},r=${r},p=${p}$${base64(salt)}$${base64(key)}`
    },
    async verify(password, stored) {
      checkPassword(password)
      const forms = passwordForms(password)
      if (stored === undefined) {
        for (const form of forms) await scrypt.derive(form, randomBytes(saltBytes), keyBytes, costOfNew)
        return { ok: false, stale: false }
      }
      const { cost, salt, key } = readHash(stored)
      const isNew = cost.N === costOfNew.N && cost.r === costOfNew.r && cost.p === costOfNew.p
      for (const form of forms) {
        const ok = timingSafeEqual(await scrypt.derive(form, salt, key.length, cost), key)
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

function readHash(stored: unknown): StoredHash {
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

/** Without padding, as in PHC. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
