/**
 * Makes a new application in a folder.
 *
 * Surprise: it is all or nothing. When something fails, what was made before is removed again.
 */
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { applicationFiles } from './application-files.ts'

/** Makes an application, says on the standard streams what was made or why not, and returns the exit status, 0 or 1. */
export function init(folder: string): number {
  try {
    const files = initApplication(folder)
    process.stdout.write(`Made in ${resolve(folder)}:\n${files.map((file) => `  ${file}\n`).join('')}`)
    process.stdout.write('Start the server in that folder, with --env dev while you build.\n')
    return 0
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n`)
    return 1
  }
}

/**
 * Makes an application in a folder, which is made when it is not there. Returns the files that were made, relative to
 * the folder. Throws an Error that says why not: the folder is not empty, or cannot be written; nothing is left behind
 * then.
 */
export function initApplication(folder: string, files = applicationFiles()): string[] {
  const made: (() => void)[] = []
  const root = resolve(folder)
  try {
    makeFolder(root, made)
    if (readdirSync(root).length > 0) throw new Error('it is not empty; name a new folder')
    for (const { name, text, mode } of files) {
      const path = join(root, name)
      makeFolder(dirname(path), made)
      makeFile(path, text, mode, made)
    }
  } catch (error) {
    const reason = reasonOf(error)
    const left = undo(made)
    const rest = left.length === 0 ? '' : `; what was made could not be removed again: ${left.join('; ')}`
    throw new Error(`Cannot make an application in ${root}: ${reason}${rest}`, { cause: error })
  }
  return files.map(({ name }) => name)
}

/** Makes a folder and those above it that are not there, and notes how to undo each. */
function makeFolder(path: string, made: (() => void)[]): void {
  if (existsSync(path)) return
  makeFolder(dirname(path), made)
  mkdirSync(path)
  made.push(() => rmdirSync(path))
}

function makeFile(path: string, text: string, mode: number, made: (() => void)[]): void {
  const descriptor = openSync(path, 'wx', mode)
  made.push(() => rmSync(path))
  try {
    writeFileSync(descriptor, text)
  } finally {
    closeSync(descriptor)
  }
}

/** Undoes the last first. Returns what could not be undone. */
function undo(made: readonly (() => void)[]): string[] {
  const failures: string[] = []
  for (const step of [...made].reverse()) {
    try {
      step()
    } catch (error) {
      failures.push(reasonOf(error))
    }
  }
  return failures
}
