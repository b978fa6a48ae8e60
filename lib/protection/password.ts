/**
 * `ctx.password`: hashes and checks the passwords of an application's users, with the scrypt of the admin's hardened
 * password.
 *
 * A hash is a text in PHC form, `$scrypt$ln=14,r=8,p=5$salt$key`: `ln` is the logarithm of N, salt and key are base64
 * without padding. A stored text that is damaged, or asks for more work than a hash should, is refused before any work:
 * whoever can write into a database must not be able to keep the server busy.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
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

/** Hashes and checks passwords: two at the same time in this process, 100 wait. */
export interface Passwords {
  /**
   * The text to store for a password, with a salt of its own.
   * @throws HttpError 422 for a password of more than 1,024 bytes, 503 when too many wait; TypeError when it is no text
   */
  hash(password: string): Promise<string>
  /**
   * Whether a password is that of a stored hash, and whether the hash should be made anew, since it has other
   * parameters than new ones have, or was made of a password that was not in its normal form.
   * @param stored undefined, where there is no such user, takes as long and is never right
   * @throws as `hash` does; Error when the stored text is no hash, an empty one too
   */
  verify(password: string, stored: string | undefined): Promise<{ readonly ok: boolean; readonly stale: boolean }>
}

interface StoredHash {
  readonly cost: ScryptCost
  readonly salt: Buffer
  readonly key: Buffer
}

const maxPasswordBytes = 1024
const [mostLn, mostR, mostP] = [17, 16, 16]
const phcPattern = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{43})$/

/** Makes what `ctx.password` is, for one server. */
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
    const advice = 'a form without the field gives undefined'
    throw new TypeError(`A password is a text: it is of type ${typeof password}; ${advice}`)
  }
  if (Buffer.byteLength(password) <= maxPasswordBytes) return
  throw new HttpError(422, 'password_too_long', `A password has at most ${maxPasswordBytes} bytes`)
}

function readHash(stored: unknown): StoredHash {
  const [, ln, r, p, salt = '', key = ''] = phcPattern.exec(typeof stored === 'string' ? stored : '') ?? []
  const cost = { N: 2 ** Number(ln), r: Number(r), p: Number(p) }
  if (ln === undefined || Number(ln) < 1 || cost.r < 1 || cost.p < 1) {
    throw new Error('Cannot check a password: the stored text is no hash that ctx.password.hash() made')
  }
  if (Number(ln) > mostLn || cost.r > mostR || cost.p > mostP || 128 * cost.N * cost.r > maxMemoryBytes) {
    const asked = `ln=${ln},r=${r},p=${p}`
    const most = `ln=${mostLn},r=${mostR},p=${mostP} and ${maxMemoryBytes / 2 ** 20} MiB at most`
    throw new Error(`Cannot check a password: the stored hash asks for too much work: ${asked}; taken are ${most}`)
  }
  return { cost, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') }
}

/** Without padding, as PHC has it. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
