/** Whether this process can write to a folder, before it has to. */
import { constants, type Stats } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Why a folder cannot be written. */
export interface FolderProblem {
  /** Whether the folder is not there, and cannot be made by this user: another may make it before the start. */
  readonly isMissing: boolean
  readonly reason: string
}

/** The functions of `node:fs/promises` that are used. */
export interface FolderAccess {
  readonly stat: (path: string) => Promise<Pick<Stats, 'isDirectory'>>
  readonly access: (path: string, mode: number) => Promise<void>
}

/**
 * Checks that a folder can be written, or made. It writes nothing, so a full disk is not found.
 * @param path absolute
 * @param file a file in it that is written; any one unless given
 * @returns undefined when it can, as far as this process may know
 */
export async function problemOfFolder(
  path: string,
  file = join(path, 'file'),
  { stat: statOf, access: accessTo }: FolderAccess = { stat, access },
): Promise<FolderProblem | undefined> {
  if (process.permission?.has('fs.write', file) === false) {
    return { isMissing: false, reason: 'the permission model does not allow it: print the flags anew with --write' }
  }
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if (!(await statOf(folder)).isDirectory()) return { isMissing: false, reason: `${folder} is no folder` }
      await accessTo(folder, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException // node:fs throws Errors.
      if (code === 'ENOENT' && folder !== dirname(folder)) continue
      if (code === 'ERR_ACCESS_DENIED') return undefined // The folders above are not for this process to see.
      if (folder === path) return { isMissing: false, reason: message }
      return { isMissing: true, reason: `it is not there, and cannot be made: ${message}` }
    }
  }
}
