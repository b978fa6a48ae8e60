/**
 * Resolves a view's name to a file, and never to one outside the application's root.
 *
 * Surprise: the paths without a file are part of the result. A file that appears there later takes precedence, so code
 * that caches the result must keep checking those paths.
 */

import { resolve } from 'node:path'
import { reasonOf } from '../base/reason.ts'
import { relativeTo } from '../files/paths.ts'
import { ViewError } from './template.ts'
import { filesOnDisk } from './view-files.ts'

/** Where a name was found. */
interface Found {
  /** Relative to the root, with `/`. */
  readonly file: string
  /** The paths that take precedence but have no file; relative to the root, with `/`. */
  readonly absent: readonly string[]
}

/** Where a view is named: a line of a view, or, with line 0, an action. */
export interface Asker {
  readonly file: string
  readonly line: number
}

/**
 * Searches several folders for a view, in order.
 * @param root the application's root, absolute
 * @param name as written: relative to one of the folders, or absolute within the root
 * @param folders relative to the root
 * @param files the file system by default
 * @throws ViewError, with the asker's file and line, when it does not exist, is not `.html`, or is outside the root
 */
export function findView(
  root: string,
  name: string,
  folders: readonly string[],
  asker: Asker,
  files = filesOnDisk,
): Found {
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
      if (files.versionOf(path) === undefined) absent.push(file)
      else if (files.isWithin(root, path)) return { file, absent }
      else fail(`the view ${shown} is a link that leads outside the application's root`)
    } catch (error) {
      if (error instanceof ViewError) throw error
      fail(`cannot access ${file}: ${reasonOf(error)}`)
    }
  }
  if (absent.length === 0) fail(`the view ${shown} is outside the application's root`)
  return fail(`there is no view ${shown}: looked for ${absent.join(', ')}`)
}
