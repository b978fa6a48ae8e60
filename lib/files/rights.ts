/**
 * The rights of this process under Node's permission model (`--permission`), and giving them up:
 * https://nodejs.org/api/permissions.html. `process.permission.drop` is in Node 24.20 and 26.3 and later.
 */

/** Node's interface. */
interface Permission {
  has(scope: string, reference?: string): boolean
  /** Missing in older versions. */
  drop?(scope: string, reference?: string): void
}

const { permission } = process as { readonly permission?: Permission }
/** Of the whole process, as its rights are. */
const dropped = new Set<string>()

/** Returns whether the process runs under the model, and the rights that it has given up, in Node's words. */
export function permissionState(): { readonly active: boolean; readonly dropped: readonly string[] } {
  return { active: permission !== undefined, dropped: [...dropped].sort() }
}

/** Whether the process may start programs. */
export function mayStartPrograms(): boolean {
  return permission?.has('child') !== false
}

/**
 * Gives up a right, for as long as the process runs. Does nothing without the right, or where Node cannot.
 * @param scope in Node's words, such as `child`
 * @param path of a right to files: exactly the one with which it was granted
 */
export function dropRight(scope: string, path?: string): void {
  const has = (): boolean => permission?.has(scope, path?.replace('*', 'x')) === true
  if (permission?.drop === undefined || !has()) return
  permission.drop(scope, path)
  if (!has()) dropped.add(scope) // Else a folder around it was granted, too.
}
