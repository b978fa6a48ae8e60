/**
 * Replaces a file atomically: the new content goes to a temporary file in the same folder, which is then renamed. So a
 * reader gets the old file or the new one, even when two processes write at once or one is killed in between.
 *
 * A killed process leaves its temporary file behind, `.NAME.0123456789ab.tmp`. `replacedBy` recognizes it, and after
 * `leftoverMs` it may be deleted.
 */
import { randomBytes } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import * as promises from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** The age in milliseconds after which a temporary file belongs to no running process. */
export const leftoverMs = 3_600_000

/** The leading dot is optional: session files of earlier versions lack it. */
const temporaryName = /^\.?(.+)\.[0-9a-f]{12}\.tmp$/

/**
 * Replaces or creates a file. If it throws, the old file is unchanged and the temporary one is removed.
 * @param write creates the temporary file
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
 * Replaces or creates a file without blocking. Rejects as `replaceFileSync` throws; a temporary file that cannot be
 * removed stays.
 * @param write creates the temporary file
 * @param files the file system; `node:fs/promises` by default
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

/**
 * Runs a function with the path of a temporary file in the folder of a file, and removes what is left of it afterwards.
 * @param create creates the temporary file, and may rename it
 */
export async function createdBeside(path: string, create: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = temporaryBeside(path)
  try {
    await create(temporary)
  } finally {
    await promises.rm(temporary, { force: true })
  }
}

/** Returns the name of the file that a temporary file was to replace; undefined for any other file. */
export function replacedBy(name: string): string | undefined {
  return temporaryName.exec(name)?.[1]
}

function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
}
