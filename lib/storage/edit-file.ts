/**
 * Changes a file as a whole or not at all: the new content is written to a temporary file in the same folder, brought
 * to disk, and takes the place of the old one.
 *
 * Surprise: the file is read anew each time, and again when somebody else replaced it in the meantime. Between the last
 * look at the file and the rename a moment remains.
 */
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
} from 'node:fs'
import { renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join, resolve } from 'node:path'
import { isUnchanged } from './file-version.ts'

/** The steps of a change that a test may want to fail. */
export interface FileSteps {
  readonly fsyncSync: typeof fsyncSync
  readonly renameSync: typeof renameSync
}

const attempts = 100
const modeOfNewFile = 0o600
/** Milliseconds after which a temporary file is nobody's any more: its process was killed. */
const leftoverMs = 3_600_000
const hints: Readonly<Record<string, string>> = {
  EACCES: 'let the user that the server runs as write to its folder',
  EPERM: 'let the user that the server runs as write to its folder',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  ENOENT: 'the folder is not there',
}

/**
 * Changes a file, which is made (mode 0600) when it is not there; mode, owner and group are kept. A symbolic link
 * stays, and what it points to is replaced; a link that leads nowhere is replaced itself.
 * @param edit makes the new text of the old one, undefined when there is no file; it may be called again
 * @throws Error that says what failed, why, and what to do. The file is the old one then (unless the very last step
 *   failed, to bring its folder to disk), and no temporary file stays.
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

/** Puts a text in the place of a file. Returns false, and changes nothing, when the file is no longer the one given. */
function replace(path: string, text: string, before: Stats | undefined, steps: FileSteps): boolean {
  const folder = openSync(dirname(path), 'r')
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
  try {
    writeWhole(temporary, text, before, steps)
    if (!isSame(before, identity(path))) return false
    steps.renameSync(temporary, path)
    steps.fsyncSync(folder)
    return true
  } finally {
    closeSync(folder)
    rmSync(temporary, { force: true })
  }
}

/** Removes what processes left behind that were killed while they saved this file. It may hold secrets. */
function removeLeftovers(path: string): void {
  const folder = dirname(path)
  const start = `.${basename(path)}.`
  try {
    for (const name of readdirSync(folder)) {
      if (!name.startsWith(start) || !/^[0-9a-f]{12}\.tmp$/.test(name.slice(start.length))) continue
      const stats = statSync(join(folder, name), { throwIfNoEntry: false })
      if (stats !== undefined && Date.now() - stats.mtimeMs > leftoverMs) rmSync(join(folder, name), { force: true })
    }
  } catch {
    // The file is saved, which is what was asked for. The next change tries again.
  }
}

function writeWhole(path: string, text: string, before: Stats | undefined, steps: FileSteps): void {
  const descriptor = openSync(path, 'wx', modeOfNewFile)
  try {
    writeFileSync(descriptor, text)
    if (before !== undefined) keepOwnerAndMode(descriptor, before)
    steps.fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/**
 * The owner first: a change of owner may clear bits of the mode. Only root may give a file away; anybody else becomes
 * its owner, which is who reads it from then on, but the group is kept or the save fails: its rights would go to
 * another group.
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
