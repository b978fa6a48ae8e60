/**
 * The credentials of the admin panel: the rules for new ones, and their creation by the first setup and `passwd`.
 */
import { createHash, randomBytes } from 'node:crypto'
import { hashPassword, normalPassword } from './password.ts'

/** The credentials: the keys `admin.user`, `admin.password` and `admin.secret`. */
export interface AdminCredentials {
  readonly user: string
  /** The hash of the password: MD5 in hex, or a hardened hash. */
  readonly password: string
  /** Signs the cookie; if it is empty, no cookie is valid. */
  readonly secret: string
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
  if (own.user !== shared.user || own.password !== shared.password) return 'differ'
  if (own.secret === shared.secret) return 'same'
  if (own.secret === '') return 'take'
  return shared.secret === '' ? 'give' : 'differ'
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
  /** Milliseconds since 1970. */
  readonly nowMs: number
}

/** Makes the credentials for a name and a password that have passed `checkSetup`. */
export async function makeCredentials(source: SecretSource): Promise<AdminCredentials> {
  const { user, password, hardened } = source
  return { user, password: await hashPassword(password, hardened), secret: makeSecret(source) }
}

/**
 * Makes a secret: by the specification the MD5, in hex, of timestamp (in whole seconds), user and password
 * concatenated; if hardened, 32 random bytes in base64url.
 */
export function makeSecret({ user, password, hardened, nowMs }: SecretSource): string {
  if (hardened) return randomBytes(32).toString('base64url')
  return createHash('md5').update(`${Math.floor(nowMs / 1000)}${user}${password}`).digest('hex')
}
