/**
 * Changes a file as a whole or not at all: the new content is forced to disk and replaces the old file.
 *
 * The file is read right before. A change that comes between that and the rename, some milliseconds later, is lost.
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
  ENOENT: 'the folder is not there',
  ERR_ACCESS_DENIED: 'print the flags anew: `svc permissions --write` with its folder',
}

/**
 * Changes a file. A missing one is made with mode 0600; mode, owner and group of the old one are kept. A symbolic link
 * stays, and its target is replaced; a link that leads nowhere is replaced itself.
 * @param edit returns the new text for the old one, undefined when there was none
 * @throws Error that says what failed, why, and what to do. The file is the old one then (unless the very last step
 *   failed, which forces its folder to disk), and no temporary file stays.
 */
export function editFile(file: string, edit: (text: string | undefined) => string): void {
  try {
    const path = realPathOf(resolve(file))
    const before = statSync(path, { throwIfNoEntry: false })
    if (before?.isFile() === false) throw new Error('it is no regular file')
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
  // The permission model has no way to force a folder to disk.
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
  // O_SYNC forces the text to disk where fsync is switched off.
  const descriptor = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_SYNC, mode)
  try {
    if (before !== undefined) (isRestricted() ? refuseOtherOwner : keepOwnerAndMode)(descriptor, before)
    writeFileSync(descriptor, text)
    if (!isRestricted()) fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Whether Node's permission model is on, which switches off fsync, fchmod and fchown. */
function isRestricted(): boolean {
  return process.permission !== undefined
}

function refuseOtherOwner(descriptor: number, before: Stats): void {
  const { uid, gid } = fstatSync(descriptor)
  const isKept = gid === before.gid && (uid === before.uid || process.geteuid?.() !== 0)
  const advice = 'let it belong to the user and group that the server runs as'
  if (!isKept) throw new Error(`its owner (${before.uid}:${before.gid}) cannot be kept with --permission: ${advice}`)
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
