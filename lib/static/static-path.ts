/**
 * Which paths may name a static file: the path that was sent, the real path that it leads to through links, and the
 * file that was opened there.
 *
 * A path that could be read in two ways is not cleaned up but refused. `..`, `.`, an empty segment, a backslash and an
 * encoded slash name no file, in whatever encoding they come.
 */
import { constants } from 'node:fs'
import { open, realpath, type FileHandle } from 'node:fs/promises'
import { sep } from 'node:path'
import { HttpError } from '../http/errors.ts'
import { pathOfOpen } from '../files/opened-file.ts'

/** The one folder with a dot that is served (RFC 8615): certificate authorities use it. */
const wellKnown = '/.well-known'

const refusedPart = /\/\.|\/\/|\\/
const encodedSlash = /%2f/i

/** Refuses a symbolic link, and does not wait for the other end of a FIFO. */
const openFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

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

/** The real paths of a folder and of a file below it. */
interface RealPaths {
  readonly folder: string
  readonly file: string
}

/**
 * Follows all links of a path below a folder, and each time those of the folder: it may be a link that a deployment
 * points to the next release.
 * @param path as `staticPath` returns it
 * @returns undefined when the file is outside the folder or behind a dot file or dot folder
 * @throws the error of the file system, for example when there is no such file
 */
export async function realPathInside(folder: string, path: string): Promise<RealPaths | undefined> {
  const [realFolder, file] = await Promise.all([realpath(folder), realpath(folder + path)])
  return isServedFrom(realFolder, file) ? { folder: realFolder, file } : undefined
}

/**
 * Opens what a path below a folder leads to. The caller closes the handle, and checks that it is a regular file.
 * @param path as `staticPath` returns it
 * @returns undefined when it is outside the folder or behind a dot file or dot folder, also when it came to lead there
 *   between the check and the opening
 * @throws the error of the file system, for example when there is no such file
 */
export async function openInside(folder: string, path: string): Promise<FileHandle | undefined> {
  const real = await realPathInside(folder, path)
  if (real === undefined) return undefined
  const handle = await openForReading(real.file)
  const opened = pathOfOpen(handle.fd, real.file)
  if (opened !== undefined && isServedFrom(real.folder, opened)) return handle
  await handle.close()
  return undefined
}

/** Opens a file for reading, unless it is a symbolic link. The caller closes the handle. */
export function openForReading(file: string): Promise<FileHandle> {
  return open(file, openFlags)
}

/** Whether a real path is below the real path of a folder, and behind no dot file or dot folder there. */
function isServedFrom(folder: string, file: string): boolean {
  return file.startsWith(folder + sep) && isServedPath(file.slice(folder.length).replaceAll(sep, '/'))
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
