/**
 * Recovery codes: each replaces a code of the authenticator app once, for a lost phone.
 *
 * A code has 120 random bits. So a fast hash, SHA-256, is enough (OWASP ASVS 5.0, 6.5.2: from 112 bits): unlike a
 * password it cannot be found by trying. The salt, one for each code, rules out a table for all servers.
 */
import { createHash, randomBytes } from 'node:crypto'
import { isEqual } from '../tokens/signature.ts'
import { toBase32 } from './totp.ts'

const codeBytes = 15
const codeCharacters = 24
const saltBytes = 9
const newCodes = 10
const hashPattern = /^sha256\$([\w-]{12})\$([\w-]{43})$/

/** Makes ten codes, such as `abcd-efgh-2345-mnop-qrst-uvwx`, and their hashes for `admin.recovery_codes`. */
export function makeRecoveryCodes(): { readonly codes: readonly string[]; readonly hashes: readonly string[] } {
  const codes = Array.from({ length: newCodes }, () => toBase32(randomBytes(codeBytes)).toLowerCase())
  const hashes = codes.map((code) => {
    const salt = randomBytes(saltBytes).toString('base64url')
    return `sha256$${salt}$${hashOf(salt, code)}`
  })
  return { codes: codes.map((code) => code.replaceAll(/(?<=.)(?=(?:.{4})+$)/g, '-')), hashes }
}

/**
 * Returns the hash of a code among some.
 * @param code as typed: in any case, with or without spaces and dashes
 * @returns undefined for a wrong code
 */
export function hashOfRecoveryCode(code: string, hashes: readonly string[]): string | undefined {
  const plain = code.replaceAll(/[\s-]/g, '').toLowerCase()
  if (plain.length !== codeCharacters) return undefined
  let found: string | undefined
  for (const hash of hashes) {
    const [, salt = '', expected = ''] = hashPattern.exec(hash) ?? []
    if (isEqual(hashOf(salt, plain), expected)) found = hash
  }
  return found
}

/** Returns what an entry of `admin.recovery_codes` must be; undefined if it is valid. */
export function checkRecoveryHash(text: string): string | undefined {
  return hashPattern.test(text) ? undefined : 'must be hashes of recovery codes: set them with svc passwd --totp'
}

function hashOf(salt: string, code: string): string {
  return createHash('sha256').update(`${salt}$${code}`).digest('base64url')
}
