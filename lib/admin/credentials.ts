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
