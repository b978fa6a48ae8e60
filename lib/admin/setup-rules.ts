/**
 * What the credentials of a setup must be. The words and their order are fixed.
 */

/** What was typed. */
export interface SetupInput {
  readonly user: string
  readonly password: string
  readonly password2: string
}

/** The shortest password, in characters (Unicode code points). */
const minPasswordLength = 6

/** The first rule that the input breaks, in words for a person; undefined when it breaks none. */
export function checkSetup({ user, password, password2 }: SetupInput): string | undefined {
  if (user.trim() === '') return 'Username cannot be empty'
  if ([...password].length < minPasswordLength) return `Password must be at least ${minPasswordLength} characters`
  if (password !== password2) return 'Passwords do not match'
  return undefined
}
