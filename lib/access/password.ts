/**
 * Hashes and checks passwords, in the specification's form (MD5) and in the hardened one.
 *
 * A hardened hash is `scrypt$N$r$p$salt$key`, salt and key in base64url; where the crypto library has no scrypt, it is
 * PBKDF2 in PHC form.
 *
 * A stored hash is checked in its own form, whatever the value of `admin.hardened`, so that switching it locks nobody
 * out. The next password gets the new form.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import {
  createKeyDerivation,
  deriveKey,
  hasMd5,
  keyBytes,
  maxMemoryBytes,
  newCost,
  pbkdf2Text,
  readPbkdf2,
  saltBytes,
  type StoredKey,
} from './key-derivation.ts'

/** Checks passwords, a few at a time. */
export type PasswordCheck = ReturnType<typeof createPasswordCheck>

const scryptPattern = /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([A-Za-z0-9_-]{11,86})\$([A-Za-z0-9_-]{22,86})$/
const md5Pattern = /^[0-9a-f]{32}$/

/**
 * Returns the form in which a password is hashed: Unicode Normalization Form C (RFC 8265, section 4.2.2). Some
 * keyboards send `é` as one code point, others as two.
 */
export function normalPassword(password: string): string {
  return password.normalize('NFC')
}

/** Returns the forms to compare: normal form, then as typed, for hashes that were made without normalization. */
export function passwordForms(password: string): readonly string[] {
  const normal = normalPassword(password)
  return normal === password ? [password] : [normal, password]
}

/**
 * Returns the text for `admin.password`: the MD5 in lower-case hex or, if hardened, a hash with a new salt, of the
 * password's normal form.
 */
export async function hashPassword(password: string, hardened: boolean): Promise<string> {
  const normal = normalPassword(password)
  if (!hardened) return md5(normal).toString('hex')
  const salt = randomBytes(saltBytes)
  const cost = newCost()
  const key = await deriveKey(normal, salt, keyBytes, cost)
  if ('iterations' in cost) return pbkdf2Text(cost, salt, key)
  return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

/** Makes a check. @param derivation checks hashes of the hardened form */
export function createPasswordCheck(derivation = createKeyDerivation()) {
  async function isThat(password: string, stored: string): Promise<boolean> {
    if (md5Pattern.test(stored)) return timingSafeEqual(md5(password), Buffer.from(stored, 'hex'))
    const { salt, key, cost } = readPbkdf2(stored) ?? readScrypt(stored)
    return timingSafeEqual(await derivation.derive(password, salt, key.length, cost), key)
  }

  return {
    /**
     * Whether a password is that of a stored hash.
     * @throws HttpError 503 if too many checks are waiting; Error if the stored text is not a valid hash, or of a form
     *   that the crypto library does not have
     */
    async matches(password: string, stored: string): Promise<boolean> {
      for (const form of passwordForms(password)) if (await isThat(form, stored)) return true
      return false
    },
  }
}

/** Whether two texts are equal. Its duration does not reveal where they differ. */
export function equalTexts(one: string, two: string): boolean {
  return timingSafeEqual(sha256(one), sha256(two))
}

function md5(text: string): Buffer {
  if (hasMd5()) return createHash('md5').update(text).digest()
  const reason = 'its hash is an MD5, which the crypto library of this Node does not have'
  throw new Error(`Cannot check a password: ${reason}; set it with svc passwd, with admin.hardened`)
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function readScrypt(stored: string): StoredKey {
  const [, n, r, p, salt = '', key = ''] = scryptPattern.exec(stored) ?? []
  const cost = { N: Number(n), r: Number(r), p: Number(p) }
  const isCost = cost.N >= 2 && Number.isInteger(Math.log2(cost.N)) && cost.r > 0 && cost.p > 0
  if (!isCost || 128 * cost.N * cost.r > maxMemoryBytes) {
    const reason = 'admin.password in svc.json is not a valid hash; set it with svc passwd'
    throw new Error(`Cannot check a password: ${reason}`)
  }
  return { cost, salt: Buffer.from(salt, 'base64url'), key: Buffer.from(key, 'base64url') }
}
