/**
 * Changes a file atomically: the new content is synced to disk and replaces the old file.
 *
 * The file is read just before. A change made between that and the rename, some milliseconds later, is lost.
 */
import { closeSync, constants, fchmodSync, fchownSync, fstatSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import { statSync, writeFileSync, type Stats } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { realPathOf } from './paths.ts'
import { replaceFileSync } from './replace-file.ts'

const modeOfNewFile = 0o600
const { O_CREAT, O_EXCL, O_SYNC, O_WRONLY } = constants
const hints: Readonly<Record<string, string>> = {
  EACCES: 'let the user that the server runs as write to its folder',
  EPERM: 'let the user that the server runs as write to its folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOENT: 'the folder does not exist',
  ERR_ACCESS_DENIED: 'print the flags again: `svc permissions --write` with its folder',
}

/**
 * Changes a file. A missing file is created with mode 0600; mode, owner and group of an existing one are kept. A
 * symbolic link stays, and its target is replaced; a dangling link is replaced itself.
 * @param edit returns the new text for the old one, which is undefined if the file does not exist
 * @throws Error with what failed, why, and what to do. The old file is then unchanged (unless only the last step
 *   failed, syncing its folder to disk), and no temporary file remains.
 */
export function editFile(file: string, edit: (text: string | undefined) => string): void {
  try {
    const path = realPathOf(resolve(file))
    const before = statSync(path, { throwIfNoEntry: false })
    if (before?.isFile() === false) throw new Error('it is not a regular file')
    replace(path, edit(before === undefined ? undefined : readText(path)), before)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException // node:fs and the functions here throw Errors
    const hint = hints[code]
    throw new Error(`Cannot save ${file}: ${message}${hint === undefined ? '' : `; ${hint}`}`, { cause: error })
  }
}

function readText(path: string): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(path))
}

function replace(path: string, text: string, before: Stats | undefined): void {
  // The permission model has no way to sync a folder to disk.
  const folder = isRestricted() ? undefined : openSync(dirname(path), 'r')
  try {
    replaceFileSync(path, (temporary) => writeWhole(temporary, text, before))
    if (folder !== undefined) fsyncSync(folder)
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
}

function writeWhole(path: string, text: string, before: Stats | undefined): void {
  const mode = before === undefined ? modeOfNewFile : before.mode & 0o777
  // O_SYNC syncs the text to disk where fsync is disabled.
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_SYNC, mode)
  try {
    if (before !== undefined) (isRestricted() ? refuseOtherOwner : keepOwnerAndMode)(descriptor, before)
    writeFileSync(descriptor, text)
    if (!isRestricted()) fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Whether Node's permission model is on, which disables fsync, fchmod and fchown. */
function isRestricted(): boolean {
  return process.permission !== undefined
}

function refuseOtherOwner(descriptor: number, before: Stats): void {
  const { uid, gid } = fstatSync(descriptor)
  const isKept = gid === before.gid && (uid === before.uid || process.geteuid?.() !== 0)
  const advice = 'change it to the user and group that the server runs as'
  if (!isKept) throw new Error(`its owner (${before.uid}:${before.gid}) cannot be kept with --permission: ${advice}`)
}

/**
 * Sets the owner first: a change of owner may clear mode bits. Only root can give a file to another user; any other
 * user becomes the owner of the new file. The group must be kept, or the save fails: another group would get access.
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
