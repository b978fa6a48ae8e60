/**
 * Where the text of views comes from: the file system, or a folder that was read once, for the server's own views,
 * which must stay available when its folder is removed.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { FileVersion } from '../files/file-version.ts'
import { readFileWithin } from '../files/opened-file.ts'
import { isWithin } from '../files/paths.ts'

/** The files of views. Each function throws the system's error. */
export interface ViewFiles {
  /** The version of a regular file, or undefined when it does not exist. */
  readonly versionOf: (path: string) => FileVersion | undefined
  /** Whether a file is below the root when links are followed. */
  readonly isWithin: (root: string, path: string) => boolean
  /** Reads a file that is below the root when links are followed. */
  readonly read: (root: string, path: string) => { readonly text: string; readonly version: FileVersion }
}

/** The error codes for a file that does not exist or whose path does not resolve. */
const absentCodes = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'])

/** The file system. */
export const filesOnDisk: ViewFiles = {
  versionOf,
  isWithin,
  read: (root, path) => {
    const { text, stats } = readFileWithin(root, path)
    return { text, version: versionFrom(stats) }
  },
}

/** The version of a file that never changes. */
const unchanging: FileVersion = { dev: 0, ino: 0, size: 0, mtimeMs: 0, ctimeMs: 0 }

/**
 * Reads the views of a folder and its subfolders, once.
 * @param folder absolute
 */
export function filesInMemory(folder: string): ViewFiles {
  const texts = new Map<string, string>()
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (name.endsWith('.html')) texts.set(resolve(folder, name), readFileSync(join(folder, name), 'utf8'))
  }
  return {
    versionOf: (path) => (texts.has(path) ? unchanging : undefined),
    isWithin: () => true,
    read: (_root, path) => ({ text: texts.get(path) ?? '', version: unchanging }),
  }
}

/**
 * Returns the version of a regular file, or undefined when it does not exist.
 * @throws the system's error when the path cannot be examined, for example for lack of permission
 */
export function versionOf(path: string): FileVersion | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() === true ? versionFrom(stats) : undefined
  } catch (error) {
    if (absentCodes.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

function versionFrom({ dev, ino, size, mtimeMs, ctimeMs }: FileVersion): FileVersion {
  return { dev, ino, size, mtimeMs, ctimeMs }
}
