/**
 * The folder of this server, for files that refer to it and outlive an upgrade.
 */
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { realPathOf } from '../files/paths.ts'

const codeFolder = fileURLToPath(new URL('..', import.meta.url))

/** Its folder, without links. */
export const serverFolder = dirname(codeFolder)

/** The name of the folder of the running code, `lib` or `dist`. */
export const codeName = basename(codeFolder)

/**
 * Returns the server's folder by the path it was called with. That may be a link, such as `/opt/svc/current`, which
 * leads to another version after an upgrade.
 * @param called the path of the called program
 */
export function calledFolder(called = process.argv[1] ?? ''): string {
  const folder = dirname(dirname(resolve(called)))
  return realPathOf(join(folder, codeName)) === realPathOf(codeFolder) ? folder : serverFolder
}
