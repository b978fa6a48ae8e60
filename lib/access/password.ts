/**
 * Hashes and checks passwords, in the specification's form (MD5) and in the hardened one (scrypt, RFC 7914).
 *
 * A hardened hash is `scrypt$N$r$p$salt$key`, salt and key in base64url. N=2^14, r=8, p=5 are parameters of the OWASP
 * Password Storage Cheat Sheet: 16 MiB of memory and one to two tenths of a second each.
 *
 * A stored hash is checked in its own form, whatever the value of `admin.hardened`, so that switching it locks nobody
 * out. The next password gets the new form.
 */
import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import type { BinaryLike, ScryptOptions } from 'node:crypto'
import { promisify } from 'node:util'
import { HttpError } from '../http/errors.ts'

/** Checks passwords, a few at a time. */
export type PasswordCheck = ReturnType<typeof createPasswordCheck>

interface ScryptHash {
  readonly cost: ScryptCost
  readonly salt: Buffer
  readonly key: Buffer
}

/** The parameters of scrypt: 128 * N * r bytes of memory, p times. */
export interface ScryptCost {
  readonly N: number
  readonly r: number
  readonly p: number
}

/** Derives keys with scrypt, a few at a time: each takes one of the four threads that file operations also need. */
export interface Scrypt {
  /**
   * @param length bytes of the key
   * @throws HttpError 503 if too many are waiting
   */
  derive(password: string, salt: Buffer, length: number, cost: ScryptCost): Promise<Buffer>
}

const scryptAsync = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scrypt)
/** The cost of a new hash. */
export const costOfNew: ScryptCost = { N: 2 ** 14, r: 8, p: 5 }
/** The bytes of the salt of a new hash. */
export const saltBytes = 16
/** The bytes of the key that a new hash derives from the password. */
export const keyBytes = 32
/** The maximum memory that a stored hash may require. */
export const maxMemoryBytes = 160 * 2 ** 20
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
 * Returns the text for `admin.password`: the MD5 in lower-case hex or, if hardened, a scrypt hash with a new salt, of
 * the password's normal form.
 */
export async function hashPassword(password: string, hardened: boolean): Promise<string> {
  const normal = normalPassword(password)
  if (!hardened) return md5(normal).toString('hex')
  const salt = randomBytes(saltBytes)
  const key = await derive(normal, salt, keyBytes, costOfNew)
  const { N, r, p } = costOfNew
  return ['scrypt', N, r, p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

/** Makes a check. Hashes of the hardened form are checked with `scrypt`. */
export function createPasswordCheck(scrypt = createScrypt()) {
  async function isThat(password: string, stored: string): Promise<boolean> {
    if (md5Pattern.test(stored)) return timingSafeEqual(md5(password), Buffer.from(stored, 'hex'))
    const { salt, key, cost } = readScrypt(stored)
    return timingSafeEqual(await scrypt.derive(password, salt, key.length, cost), key)
  }

  return {
    /**
     * Whether a password is that of a stored hash.
     * @throws HttpError 503 if too many checks are waiting; Error if the stored text is not a valid hash
     */
    async matches(password: string, stored: string): Promise<boolean> {
      for (const form of passwordForms(password)) if (await isThat(form, stored)) return true
      return false
    },
  }
}

/**
 * Creates a scrypt with its own limits.
 * @param atOnce the maximum of concurrent derivations
 * @param maxWaiting the maximum of waiting derivations
 */
export function createScrypt(atOnce = 2, maxWaiting = 100): Scrypt {
  const waiting: (() => void)[] = []
  let running = 0

  async function enter(): Promise<void> {
    if (running < atOnce) {
      running += 1
      return
    }
    if (waiting.length >= maxWaiting) {
      const headers = { 'Retry-After': '1' }
      throw new HttpError(503, 'overloaded', 'Too many passwords are waiting to be checked', { headers })
    }
    await new Promise<void>((resolve) => waiting.push(resolve))
  }

  function leave(): void {
    const next = waiting.shift()
    if (next === undefined) running -= 1
    else next()
  }

  return {
    async derive(password, salt, length, cost) {
      await enter()
      try {
        return await derive(password, salt, length, cost)
      } finally {
        leave()
      }
    },
  }
}

/** Whether two texts are equal. Its duration does not reveal where they differ. */
export function equalTexts(one: string, two: string): boolean {
  return timingSafeEqual(sha256(one), sha256(two))
}

function md5(text: string): Buffer {
  return createHash('md5').update(text).digest()
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function readScrypt(stored: string): ScryptHash {
  const [, n, r, p, salt = '', key = ''] = scryptPattern.exec(stored) ?? []
  const cost = { N: Number(n), r: Number(r), p: Number(p) }
  const isCost = cost.N >= 2 && Number.isInteger(Math.log2(cost.N)) && cost.r > 0 && cost.p > 0
  if (!isCost || 128 * cost.N * cost.r > maxMemoryBytes) {
    const reason = 'admin.password in svc.json is not a valid hash; set it with svc passwd'
    throw new Error(`Cannot check a password: ${reason}`)
  }
  return { cost, salt: Buffer.from(salt, 'base64url'), key: Buffer.from(key, 'base64url') }
}

function derive(password: string, salt: Buffer, length: number, cost: ScryptCost): Promise<Buffer> {
  return scryptAsync(password, salt, length, { ...cost, maxmem: 2 * maxMemoryBytes })
}
