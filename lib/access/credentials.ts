/**
 * The credentials of the admin panel: the rules for new ones, and their creation by the first setup and `passwd`.
 */
import { createHash, randomBytes } from 'node:crypto'
import { hashPassword, normalPassword } from './password.ts'

/** The credentials: the keys `admin.user`, `admin.password` and `admin.secret`, and the second factor. */
export interface AdminCredentials {
  readonly user: string
  /** The hash of the password: MD5 in hex, or a hardened hash. */
  readonly password: string
  /** Signs the cookie; if it is empty, no cookie is valid. */
  readonly secret: string
  /** Absent: the password is enough. */
  readonly secondFactor?: SecondFactor
}

/** The second factor: the keys `admin.totp` and `admin.recovery_codes`. */
export interface SecondFactor {
  /** The secret of the codes, in base32. */
  readonly secret: string
  /** The hashes of the recovery codes. Some may have been used: see `used-codes.ts`. */
  readonly recoveryCodes: readonly string[]
}

/** Whether setup is required: by the specification, if the name or the password is empty. */
export function setupRequired(credentials: AdminCredentials): boolean {
  return credentials.user === '' || credentials.password === ''
}

/** How a machine's own credentials relate to the shared ones, and what follows. */
export type Judgement =
  /** Nothing: they are equal, or there are none. */
  | 'same'
  /** The machine uses the shared credentials. */
  | 'take'
  /** The machine's own credentials are to be shared. */
  | 'give'
  /** Both exist and differ: the machine keeps its own. */
  | 'differ'

/**
 * Compares a machine's own credentials with the shared ones.
 * @param own from its configuration; empty strings if it has none
 * @param shared undefined if none are shared
 */
export function judge(own: AdminCredentials, shared: AdminCredentials | undefined): Judgement {
  const hasOwn = !setupRequired(own)
  if (shared === undefined) return hasOwn ? 'give' : 'same'
  if (!hasOwn) return 'take'
  if (!isSameAdmin(own, shared)) return 'differ'
  if (own.secret === shared.secret) return 'same'
  if (own.secret === '') return 'take'
  return shared.secret === '' ? 'give' : 'differ'
}

/** Whether two credentials have the same name, password and second factor. */
export function isSameAdmin(one: AdminCredentials, other: AdminCredentials): boolean {
  const hasSameFactor = one.secondFactor?.secret === other.secondFactor?.secret
  return one.user === other.user && one.password === other.password && hasSameFactor
}

/** The input of a setup. */
export interface SetupInput {
  readonly user: string
  readonly password: string
  readonly password2: string
}

/** The minimum length of a password, in characters (Unicode code points of its normal form). */
const minPasswordLength = 6

/** Returns the first violated rule, in the words of the specification; undefined if the input is valid. */
export function checkSetup({ user, password, password2 }: SetupInput): string | undefined {
  if (user.trim() === '') return 'Username cannot be empty'
  const normal = normalPassword(password)
  if ([...normal].length < minPasswordLength) return `Password must be at least ${minPasswordLength} characters`
  if (normal !== normalPassword(password2)) return 'Passwords do not match'
  return undefined
}

/** The values that a secret is derived from. */
interface SecretSource {
  readonly user: string
  /** The password; its hash if only that is known. */
  readonly password: string
  /** `admin.hardened`. */
  readonly hardened: boolean
  readonly secondFactor?: SecondFactor | undefined
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Makes the credentials for a name and a password that have passed `checkSetup`. */
export async function makeCredentials(source: SecretSource): Promise<AdminCredentials> {
  const { user, password, hardened, secondFactor } = source
  const hash = await hashPassword(password, hardened)
  return { user, password: hash, secret: makeSecret(source), ...(secondFactor && { secondFactor }) }
}

/** Whether a secret may have been computed from the password, by the rule of the specification. */
export function isDerivedSecret(secret: string): boolean {
  return /^[0-9a-f]{32}$/.test(secret)
}

/**
 * Makes a secret: by the specification the MD5, in hex, of timestamp (in whole seconds), user and password
 * concatenated; if hardened, 32 random bytes in base64url.
 *
 * Surprise: it is random with a second factor, too. Otherwise the password would be enough to compute it, and so to
 * sign a cookie without a code.
 */
export function makeSecret({ user, password, hardened, secondFactor, nowMs }: SecretSource): string {
  if (hardened || secondFactor !== undefined) return randomBytes(32).toString('base64url')
  return createHash('md5').update(`${Math.floor(nowMs / 1000)}${user}${password}`).digest('hex')
}
