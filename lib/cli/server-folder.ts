/**
 * The folder of this server, for what names it in files that outlive an upgrade.
 */
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { realPathOf } from '../files/paths.ts'

const codeFolder = fileURLToPath(new URL('..', import.meta.url))

/** Its folder, without links. */
export const serverFolder = dirname(codeFolder)

/** The name of the folder of the code that runs, `lib` or `dist`. */
export const codeName = basename(codeFolder)

/**
 * Its folder by the path that it was called with. That may be a link, such as `/opt/svc/current`, which leads to
 * another version after an upgrade.
 * @param called the program that was called
 */
export function calledFolder(called = process.argv[1] ?? ''): string {
  const folder = dirname(dirname(resolve(called)))
  return realPathOf(join(folder, codeName)) === realPathOf(codeFolder) ? folder : serverFolder
}
