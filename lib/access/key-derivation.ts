/**
 * Derives keys from passwords, a few at a time: with scrypt (RFC 7914) or, where the crypto library has none, as in
 * FIPS mode, with PBKDF2-HMAC-SHA256 (RFC 8018). The costs of new hashes are those of the OWASP Password Storage Cheat
 * Sheet: 16 MiB of memory or 600,000 iterations, some tenths of a second each.
 */
import { createHash, pbkdf2, scrypt, scryptSync, type BinaryLike, type ScryptOptions } from 'node:crypto'
import { promisify } from 'node:util'
import { HttpError } from '../http/errors.ts'

/** The parameters of scrypt: 128 * N * r bytes of memory, p times. */
interface ScryptCost {
  readonly N: number
  readonly r: number
  readonly p: number
}

/** The parameter of PBKDF2. */
interface Pbkdf2Cost {
  readonly iterations: number
}

/** The cost of a hash, and so the function that makes it. */
export type Cost = ScryptCost | Pbkdf2Cost

/** Derives keys, a few at a time: each takes one of the four threads that file operations also need. */
export interface KeyDerivation {
  /**
   * @param length bytes of the key
   * @throws HttpError 503 if too many are waiting; Error if the crypto library does not have the function
   */
  derive(password: string, salt: Buffer, length: number, cost: Cost): Promise<Buffer>
}

/** A stored hash. */
export interface StoredKey<C extends Cost = Cost> {
  readonly cost: C
  readonly salt: Buffer
  readonly key: Buffer
}

/** The cost of a new hash with scrypt. */
const scryptCost: ScryptCost = { N: 2 ** 14, r: 8, p: 5 }
/** The cost of a new hash with PBKDF2. */
const pbkdf2Cost: Pbkdf2Cost = { iterations: 600_000 }
/** The bytes of the salt of a new hash. */
export const saltBytes = 16
/** The bytes of the key that a new hash derives from the password. */
export const keyBytes = 32
/** The maximum memory that a stored hash may require. */
export const maxMemoryBytes = 160 * 2 ** 20
/** The maximum of iterations that a stored hash may require: some seconds of a core. */
const maxIterations = 5_000_000

const scryptAsync = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scrypt)
const pbkdf2Async = promisify(pbkdf2)
const pbkdf2Pattern = /^\$pbkdf2-sha256\$i=(\d{1,8})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/
let scryptIsThere: boolean | undefined

/** Whether the crypto library of this Node has MD5. */
export function hasMd5(): boolean {
  try {
    createHash('md5')
    return true
  } catch {
    return false
  }
}

/** Whether the crypto library of this Node has scrypt. */
export function hasScrypt(): boolean {
  if (scryptIsThere !== undefined) return scryptIsThere
  try {
    scryptSync('', '', keyBytes, { N: 2, r: 1, p: 1 })
    scryptIsThere = true
  } catch {
    scryptIsThere = false
  }
  return scryptIsThere
}

/** Returns the cost of a new hash. */
export function newCost(): Cost {
  return hasScrypt() ? scryptCost : pbkdf2Cost
}

/** Writes a hash with PBKDF2 in PHC form, `$pbkdf2-sha256$i=600000$salt$key`. */
export function pbkdf2Text({ iterations }: Pbkdf2Cost, salt: Buffer, key: Buffer): string {
  return `$pbkdf2-sha256$i=${iterations}$${base64(salt)}$${base64(key)}`
}

/** Reads a hash with PBKDF2; undefined for another text, and for one that requires too much. */
export function readPbkdf2(text: string): StoredKey<Pbkdf2Cost> | undefined {
  const [, count, salt = '', key = ''] = pbkdf2Pattern.exec(text) ?? []
  const iterations = Number(count)
  if (!(iterations >= 1 && iterations <= maxIterations)) return undefined
  return { cost: { iterations }, salt: Buffer.from(salt, 'base64'), key: Buffer.from(key, 'base64') }
}

/** Encodes bytes in base64 without padding, as in PHC. */
export function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/** Derives a key at once, however many are being derived. Rejects if the crypto library does not have the function. */
export async function deriveKey(password: string, salt: Buffer, length: number, cost: Cost): Promise<Buffer> {
  if ('iterations' in cost) return pbkdf2Async(password, salt, cost.iterations, length, 'sha256')
  if (!hasScrypt()) {
    const reason = 'its hash was made with scrypt, which the crypto library of this Node does not have'
    throw new Error(`Cannot check a password: ${reason}; set the password again`)
  }
  return scryptAsync(password, salt, length, { ...cost, maxmem: 2 * maxMemoryBytes })
}

/**
 * Creates a derivation with its own limits.
 * @param atOnce the maximum of concurrent ones
 * @param maxWaiting the maximum of waiting ones
 */
export function createKeyDerivation(atOnce = 2, maxWaiting = 100): KeyDerivation {
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
        return await deriveKey(password, salt, length, cost)
      } finally {
        leave()
      }
    },
  }
}
