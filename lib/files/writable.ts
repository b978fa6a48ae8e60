/** Checks whether this process can write to a folder, before it has to. */
import { constants, type Stats } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Why a folder cannot be written. */
export interface FolderProblem {
  /** Whether the folder is missing and this user cannot create it: another may do so before the start. */
  readonly isMissing: boolean
  readonly reason: string
}

/** The functions of `node:fs/promises` used here. */
export interface FolderAccess {
  readonly stat: (path: string) => Promise<Pick<Stats, 'isDirectory'>>
  readonly access: (path: string, mode: number) => Promise<void>
}

/**
 * Checks that a folder can be written, or created. Writes nothing, so it does not detect a full disk.
 * @param path absolute
 * @param file a file in it that will be written; any file by default
 * @returns undefined when it can, as far as this process can tell
 */
export async function problemOfFolder(
  path: string,
  file = join(path, 'file'),
  { stat: statOf, access: accessTo }: FolderAccess = { stat, access },
): Promise<FolderProblem | undefined> {
  if (process.permission?.has('fs.write', file) === false) {
    return { isMissing: false, reason: 'the permission model does not allow it: print the flags again with --write' }
  }
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      if (!(await statOf(folder)).isDirectory()) return { isMissing: false, reason: `${folder} is not a folder` }
      await accessTo(folder, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException // node:fs throws Errors.
      if (code === 'ENOENT' && folder !== dirname(folder)) continue
      if (code === 'ERR_ACCESS_DENIED') return undefined // This process is not allowed to see the folders above.
      if (folder === path) return { isMissing: false, reason: message }
      return { isMissing: true, reason: `it does not exist and cannot be created: ${message}` }
    }
  }
}
