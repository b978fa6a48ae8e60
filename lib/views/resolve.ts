/**
 * Finds the file that a view's name means, and nothing outside the application's root.
 *
 * Surprise: a name that was looked for and not found belongs to the answer. A file that appears there later comes first
 * in the order, so whoever keeps the answer must also keep looking at those places.
 */

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { FileVersion } from '../storage/file-version.ts'
import { isWithin, relativeTo } from '../storage/paths.ts'
import { ViewError } from './errors.ts'

/** Where a name was found. */
export interface Found {
  /** Relative to the root, with `/`. */
  readonly file: string
  /** The places before it in the order where nothing was; each relative to the root, with `/`. */
  readonly absent: readonly string[]
}

/** Who asks for a view: a line of a view, or, with line 0, an action. */
export interface Asker {
  readonly file: string
  readonly line: number
}

/** What an absent file, or one that cannot be reached, looks like. */
const absentCodes = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP'])

/**
 * Looks for a view in several folders, in their order.
 * @param root the application's root, absolute
 * @param name as written: relative to one of the folders, or absolute within the root
 * @param folders relative to the root
 * @throws ViewError, at the asker's place, when there is none, it is not `.html`, or it is outside the root
 */
export function findView(root: string, name: string, folders: readonly string[], asker: Asker): Found {
  const fail = (reason: string): never => {
    throw new ViewError(asker.file, asker.line, reason)
  }
  const shown = JSON.stringify(name)
  if (!name.endsWith('.html')) fail(`a view's name must end in ".html": it is ${shown}`)
  if (name.includes('\0')) fail(`a view's name must not have a zero byte: it is ${shown}`)
  const absent: string[] = []
  for (const folder of folders) {
    const path = resolve(root, folder, name)
    const file = relativeTo(root, path)
    if (file === undefined || absent.includes(file)) continue
    try {
      if (versionOf(path) === undefined) absent.push(file)
      else if (isWithin(root, path)) return { file, absent }
      else fail(`the view ${shown} is a link that leads outside the application's root`)
    } catch (error) {
      if (error instanceof ViewError) throw error
      fail(`cannot look at ${file}: ${(error as Error).message}`)
    }
  }
  if (absent.length === 0) fail(`the view ${shown} is outside the application's root`)
  return fail(`there is no view ${shown}: looked for ${absent.join(', ')}`)
}

/**
 * The version of a regular file, or undefined when there is none.
 * @throws the system's error when the place cannot be looked at, for want of permission say
 */
export function versionOf(path: string): FileVersion | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined || !stats.isFile()) return undefined
    const { dev, ino, size, mtimeMs, ctimeMs } = stats
    return { dev, ino, size, mtimeMs, ctimeMs }
  } catch (error) {
    if (absentCodes.has((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
