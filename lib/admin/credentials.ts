/**
 * What guards the admin panel: the keys `admin.user`, `admin.password` and `admin.secret` as they are now.
 */

/** The present credentials. */
export interface AdminCredentials {
  readonly user: string
  /** The hash of the password: MD5 in hex, or a text that begins with `scrypt`. */
  readonly password: string
  /** Signs the cookie; empty: no cookie passes. */
  readonly secret: string
}

/** Whether setup is required: the spec says so when the name or the password is empty. */
export function setupRequired(credentials: AdminCredentials): boolean {
  return credentials.user === '' || credentials.password === ''
}

/** What to do with the credentials that a machine has of its own and those that are shared. */
export type Judgement =
  /** Nothing: they are the same, or there are none. */
  | 'same'
  /** The machine takes the shared ones. */
  | 'take'
  /** The machine's own are to be shared. */
  | 'give'
  /** Both are there and differ: the machine keeps its own. */
  | 'differ'

/**
 * Compares the credentials that a machine has of its own with those that are shared.
 * @param own those of its configuration; empty texts where it has none
 * @param shared undefined where none are shared
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
