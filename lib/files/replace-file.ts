/**
 * Replaces a file as a whole: the new content goes to a temporary file in the same folder, which is then renamed. So a
 * reader gets the old file or the new one, also when two processes write at once or one is killed in between.
 *
 * A killed process leaves its temporary file behind, `.NAME.0123456789ab.tmp`. `replacedBy` recognizes it, and after
 * `leftoverMs` it may be deleted.
 */
import { randomBytes } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import * as promises from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** The age in milliseconds from which on a temporary file belongs to no running process. */
export const leftoverMs = 3_600_000

/** The dot in front is optional: files of sessions had none before. */
const temporaryName = /^\.?(.+)\.[0-9a-f]{12}\.tmp$/

/**
 * Replaces a file, or makes it. When something throws, the old file is still there and the temporary one is removed.
 * @param write makes the temporary file
 */
export function replaceFileSync(path: string, write: (temporary: string) => void): void {
  const temporary = temporaryBeside(path)
  try {
    write(temporary)
    renameSync(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
}

/**
 * Replaces a file, or makes it, without blocking. Rejects as `replaceFileSync` throws; a temporary file that cannot be
 * removed stays.
 * @param write makes the temporary file
 * @param files the file system; `node:fs/promises` unless given
 */
export async function replaceFile(
  path: string,
  write: (temporary: string) => Promise<void>,
  files: { rename(from: string, to: string): Promise<void>; unlink(path: string): Promise<void> } = promises,
): Promise<void> {
  const temporary = temporaryBeside(path)
  try {
    await write(temporary)
    await files.rename(temporary, path)
  } catch (error) {
    await files.unlink(temporary).catch(() => {}) // The first failure is the one to report.
    throw error
  }
}

/** The name of the file that a temporary file was to replace; undefined for any other file. */
export function replacedBy(name: string): string | undefined {
  return temporaryName.exec(name)?.[1]
}

function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
}
