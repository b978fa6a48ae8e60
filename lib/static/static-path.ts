/**
 * Which paths may name a static file: the path that was sent, and the real path that it leads to through links.
 *
 * A path that could be read in two ways is not cleaned up but refused. `..`, `.`, an empty segment, a backslash and an
 * encoded slash name no file, in whatever encoding they come.
 */
import { realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { HttpError } from '../http/errors.ts'

/** The one folder with a dot that is served (RFC 8615): certificate authorities use it. */
const wellKnown = '/.well-known'

const refusedPart = /\/\.|\/\/|\\/
const encodedSlash = /%2f/i

/**
 * Decodes a path, once.
 * @param path as sent, without query; begins with '/'
 * @returns the decoded path; undefined when it may name no file
 * @throws HttpError 400 `bad_path_encoding` for a malformed percent-encoding, one that is not UTF-8, or a NUL
 */
export function staticPath(path: string): string | undefined {
  const decoded = path.includes('%') ? decode(path) : path
  if (decoded.includes('\0')) throw new HttpError(400, 'bad_path_encoding', 'The path holds a NUL character')
  return encodedSlash.test(path) || !isServedPath(decoded) ? undefined : decoded
}

/**
 * Follows all links of a path below a folder, and each time those of the folder: it may be a link that a deployment
 * points to the next release.
 * @param path as `staticPath` returns it
 * @returns the absolute path of the file; undefined when it is outside the folder or behind a dot file or dot folder
 * @throws the error of the file system, for example when there is no such file
 */
export async function realPathInside(folder: string, path: string): Promise<string | undefined> {
  const [realFolder, real] = await Promise.all([realpath(folder), realpath(folder + path)])
  if (!real.startsWith(realFolder + sep)) return undefined
  return isServedPath(real.slice(realFolder.length).replaceAll(sep, '/')) ? real : undefined
}

/** Whether a path has no dot file or dot folder but `/.well-known/`, no empty segment and no backslash. */
function isServedPath(path: string): boolean {
  return !refusedPart.test(path.startsWith(`${wellKnown}/`) ? path.slice(wellKnown.length) : path)
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    throw new HttpError(400, 'bad_path_encoding', 'The path is not percent-encoded UTF-8', { cause: error })
  }
}
