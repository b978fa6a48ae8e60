/**
 * Changes a file as a whole or not at all: the new content is forced to disk and replaces the old file.
 *
 * The file is read each time, and again when another process has replaced it in the meantime. A change that comes
 * between the last look at the file and the rename is lost.
 */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import type { Stats } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isUnchanged } from './file-version.ts'
import { leftoverMs, replacedBy, replaceFileSync } from './replace-file.ts'

/** The steps of a change that a test can make fail. */
export interface FileSteps {
  readonly fsyncSync: typeof fsyncSync
  readonly renameSync: typeof renameSync
}

const attempts = 100
const modeOfNewFile = 0o600
const { O_CREAT, O_EXCL, O_SYNC, O_WRONLY } = constants
const hints: Readonly<Record<string, string>> = {
  EACCES: 'let the user that the server runs as write to its folder',
  EPERM: 'let the user that the server runs as write to its folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOENT: 'the folder is not there',
  ERR_ACCESS_DENIED: 'print the flags anew: `svc permissions --write` with its folder',
}

/**
 * Changes a file. A missing one is made with mode 0600; mode, owner and group of the old one are kept. A symbolic link
 * stays, and its target is replaced; a link that leads nowhere is replaced itself.
 * @param edit returns the new text for the old one, undefined when there was none; it may be called again
 * @throws Error that says what failed, why, and what to do. The file is the old one then (unless the very last step
 *   failed, which forces its folder to disk), and no temporary file stays.
 */
export function editFile(
  file: string,
  edit: (text: string | undefined) => string,
  steps: FileSteps = { fsyncSync, renameSync },
): void {
  try {
    const path = finalPath(resolve(file))
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const before = identity(path)
      const text = edit(before === undefined ? undefined : readText(path))
      if (replace(path, text, before, steps)) return removeLeftovers(path)
    }
    throw new Error(`it was changed by somebody else ${attempts} times in a row; try again`)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException // node:fs and the functions here throw Errors
    const hint = hints[code]
    throw new Error(`Cannot save ${file}: ${message}${hint === undefined ? '' : `; ${hint}`}`, { cause: error })
  }
}

function finalPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return path
  }
}

function identity(path: string): Stats | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats !== undefined && !stats.isFile()) throw new Error('it is no regular file')
  return stats
}

function readText(path: string): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path))
}

/** Replaces a file with a text. Returns false, and changes nothing, when the file has changed since `before`. */
function replace(path: string, text: string, before: Stats | undefined, steps: FileSteps): boolean {
  // The permission model has no way to force a folder to disk.
  const folder = isRestricted() ? undefined : openSync(dirname(path), 'r')
  const write = (temporary: string): boolean => {
    writeWhole(temporary, text, before, steps)
    return isSame(before, identity(path))
  }
  try {
    if (!replaceFileSync(path, write, steps.renameSync)) return false
    if (folder !== undefined) steps.fsyncSync(folder)
    return true
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
}

/** Removes the temporary files of processes that were killed while they saved this file. They may hold secrets. */
function removeLeftovers(path: string): void {
  const folder = dirname(path)
  try {
    for (const name of readdirSync(folder)) {
      if (replacedBy(name) !== basename(path)) continue
      const stats = statSync(join(folder, name), { throwIfNoEntry: false })
      if (stats !== undefined && Date.now() - stats.mtimeMs > leftoverMs) rmSync(join(folder, name), { force: true })
    }
  } catch {
    // The file is saved. The next change tries again.
  }
}

function writeWhole(path: string, text: string, before: Stats | undefined, steps: FileSteps): void {
  if (isRestricted()) return writeRestricted(path, text, before)
  const descriptor = openSync(path, 'wx', modeOfNewFile)
  try {
    writeFileSync(descriptor, text)
    if (before !== undefined) keepOwnerAndMode(descriptor, before)
    steps.fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Whether Node's permission model is on, which switches off fsync, fchmod and fchown. */
function isRestricted(): boolean {
  return process.permission !== undefined
}

/** `writeWhole` with what is left: the system forces each write to disk, and the file is opened with its mode. */
function writeRestricted(path: string, text: string, before: Stats | undefined): void {
  const mode = before === undefined ? modeOfNewFile : before.mode & 0o777
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_SYNC, mode)
  try {
    const { uid, gid } = fstatSync(descriptor)
    const isKept = before === undefined || (gid === before.gid && (uid === before.uid || process.geteuid?.() !== 0))
    const advice = 'let it belong to the user and group that the server runs as'
    if (!isKept) throw new Error(`its owner (${before.uid}:${before.gid}) cannot be kept with --permission: ${advice}`)
    writeFileSync(descriptor, text)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Sets the owner first: a change of owner may clear bits of the mode. Only root may give a file to another user, so for
 * any other user the new file is their own. The group is kept, or the save fails: another group would get its rights.
 */
function keepOwnerAndMode(descriptor: number, before: Stats): void {
  const owner = process.geteuid?.() === 0 ? before.uid : -1
  try {
    fchownSync(descriptor, owner, before.gid)
  } catch (error) {
    const advice = 'run this as root, or as a user of that group'
    throw new Error(`its group (${before.gid}) cannot be kept by this user: ${advice}`, { cause: error })
  }
  fchmodSync(descriptor, before.mode & 0o7777)
}

function isSame(before: Stats | undefined, now: Stats | undefined): boolean {
  return before === undefined || now === undefined ? before === now : isUnchanged(before, now)
}
