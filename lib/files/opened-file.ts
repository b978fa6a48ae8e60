/**
 * Checks an open file. A path that was checked may lead elsewhere by the time it is opened: another process can swap
 * one of its folders for a link in between. So the check must be on the opened file.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { relativeTo } from './paths.ts'

/** The content of a file, and its state before it was read. */
interface ReadFile {
  readonly text: string
  readonly stats: Stats
}

/**
 * Returns the path of an open file without links, or undefined if it is unknown. If the file was removed or replaced
 * since, the path may end in ` (deleted)` (proc_pid_fd(5)).
 *
 * Linux knows the path of each descriptor. Elsewhere, and where `/proc` cannot be read, this resolves `path` again and
 * checks that it is the same file. That misses an attacker who swaps folders twice within a few microseconds.
 * @param path the path that was opened
 */
export function pathOfOpen(descriptor: number, path: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return pathIfSame(descriptor, path)
  }
}

/**
 * Reads a regular file below a folder as UTF-8. Follows links, and does not block on a FIFO.
 * @param maxBytes the largest file to read
 * @throws Error with the reason: without the path if it is too large or not a regular file in that folder, else the
 *   error of the system
 */
export function readFileWithin(root: string, path: string, maxBytes = Infinity): ReadFile {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const stats = fstatSync(descriptor)
    if (!stats.isFile()) throw new Error('it is not a regular file')
    const opened = pathOfOpen(descriptor, path)
    const isInside = opened !== undefined && relativeTo(realpathSync.native(root), opened) !== undefined
    if (!isInside) throw new Error(`it is outside ${root}`)
    if (stats.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
    return { text: readFileSync(descriptor, 'utf8'), stats }
  } finally {
    closeSync(descriptor)
  }
}

function pathIfSame(descriptor: number, path: string): string | undefined {
  try {
    const real = realpathSync.native(path)
    const [opened, there] = [fstatSync(descriptor), lstatSync(real)]
    return opened.ino === there.ino && opened.dev === there.dev ? real : undefined
  } catch {
    return undefined // It no longer exists.
  }
}
