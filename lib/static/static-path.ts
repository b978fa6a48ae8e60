/**
 * Decides which paths may name a static file: checks the path as sent, the real path that it leads to through links,
 * and the file that was opened there.
 *
 * An ambiguous path is refused, not normalized. `..`, `.`, an empty segment, a backslash and an encoded slash never
 * name a file, in any encoding.
 */
import { constants } from 'node:fs'
import { open, realpath, type FileHandle } from 'node:fs/promises'
import { sep } from 'node:path'
import { HttpError } from '../http/errors.ts'
import { pathOfOpen } from '../files/opened-file.ts'

/** The only dot folder of a static site that is served (RFC 8615): certificate authorities use it. */
const wellKnown = '/.well-known'

const refusedPart = /\/\.|\/\/|\\/
const encodedSlash = /%2f/i

/** Refuses a symbolic link, and does not wait for the other end of a FIFO. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Decodes a path, once.
 * @param path as sent, without query; begins with '/'
 * @returns the decoded path; undefined when it must not name a file
 * @throws HttpError 400 `bad_path_encoding` for a malformed percent-encoding, one that is not UTF-8, or a NUL
 */
export function staticPath(path: string): string | undefined {
  const decoded = path.includes('%') ? decode(path) : path
  if (decoded.includes('\0')) throw new HttpError(400, 'bad_path_encoding', 'The path holds a NUL character')
  return encodedSlash.test(path) || !isServedPath(decoded) ? undefined : decoded
}

/** The real paths of a folder and of a file below it. */
interface RealPaths {
  readonly folder: string
  readonly file: string
}

/**
 * Resolves all links of a path below a folder, and each time those of the folder itself: it may be a link that a
 * deployment points to the next release.
 * @param path as `staticPath` returns it
 * @param mayServe decides on a path below the folder
 * @returns undefined when the file is outside the folder, or `mayServe` returns false
 * @throws the error of the file system, for example when there is no such file
 */
export async function realPathInside(
  folder: string,
  path: string,
  mayServe = isServedPath,
): Promise<RealPaths | undefined> {
  const [realFolder, file] = await Promise.all([realpath(folder), realpath(folder + path)])
  return isServedFrom(realFolder, file, mayServe) ? { folder: realFolder, file } : undefined
}

/**
 * Opens the file at a path below a folder. The caller closes the handle, and checks that it is a regular file.
 * @param path as `staticPath` returns it
 * @param mayServe decides on a path below the folder; by default `isServedPath`
 * @returns undefined when it is outside the folder, or `mayServe` returns false, also when a link was changed between
 *   the check and the opening
 * @throws the error of the file system, for example when there is no such file
 */
export async function openInside(
  folder: string,
  path: string,
  mayServe = isServedPath,
): Promise<FileHandle | undefined> {
  const real = await realPathInside(folder, path, mayServe)
  if (real === undefined) return undefined
  const handle = await openForReading(real.file)
  const opened = pathOfOpen(handle.fd, real.file)
  if (opened !== undefined && isServedFrom(real.folder, opened, mayServe)) return handle
  await handle.close()
  return undefined
}

/** Opens a file for reading, unless it is a symbolic link. The caller closes the handle. */
export function openForReading(file: string): Promise<FileHandle> {
  return open(file, openFlags)
}

/** Whether a real path is below the real path of a folder, and the path below it may be served. */
function isServedFrom(folder: string, file: string, mayServe: (path: string) => boolean): boolean {
  return file.startsWith(folder + sep) && mayServe(file.slice(folder.length).replaceAll(sep, '/'))
}

/** Whether a path has no dot file or dot folder except `/.well-known/`, no empty segment and no backslash. */
function isServedPath(path: string): boolean {
  return isPlainPath(path.startsWith(`${wellKnown}/`) ? path.slice(wellKnown.length) : path)
}

/** Whether a path that begins with '/' has no name with a leading dot, no empty segment and no backslash. */
export function isPlainPath(path: string): boolean {
  return !refusedPart.test(path)
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch (error) {
    throw new HttpError(400, 'bad_path_encoding', 'The path is not percent-encoded UTF-8', { cause: error })
  }
}
