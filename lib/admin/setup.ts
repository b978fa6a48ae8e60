/**
 * The credentials that a setup, and the word `passwd`, make: a name, a password hash and a secret for the cookie.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { AdminCredentials } from './credentials.ts'
import { hashPassword } from './password.ts'

/** What a secret is made of. */
export interface SecretSource {
  readonly user: string
  /** The password; where only its hash is known, the hash. */
  readonly password: string
  /** `admin.hardened`. */
  readonly hardened: boolean
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Makes the credentials of a name and a password that have passed `checkSetup`. */
export async function makeCredentials(source: SecretSource): Promise<AdminCredentials> {
  const { user, password, hardened } = source
  return { user, password: await hashPassword(password, hardened), secret: makeSecret(source) }
}

/**
 * Makes a secret: by the spec the MD5, in hex, of timestamp (in whole seconds), user and password concatenated;
 * hardened, 32 random bytes in base64url.
 */
export function makeSecret({ user, password, hardened, nowMs }: SecretSource): string {
  if (hardened) return randomBytes(32).toString('base64url')
  return createHash('md5').update(`${Math.floor(nowMs / 1000)}${user}${password}`).digest('hex')
}
