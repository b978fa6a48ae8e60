/**
 * Checks of a file that is open. A path that was checked may lead elsewhere by the time it is opened: another process
 * can swap one of its folders for a link in between. So the file that was opened is the one to check.
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
 * The path of an open file without links, or undefined where it is unknown. That of a file that was removed or replaced
 * since may end in ` (deleted)` (proc_pid_fd(5)).
 *
 * Linux knows the path of each descriptor. Elsewhere, and where `/proc` cannot be read, this is the path that `path`
 * leads to now if the same file is there. That misses somebody who swaps folders twice within a few microseconds.
 * @param path that the file was opened by
 */
export function pathOfOpen(descriptor: number, path: string): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return pathIfSame(descriptor, path)
  }
}

/**
 * Reads a regular file below a folder as UTF-8. It may be reached through links, and a FIFO does not make it wait.
 * @param maxBytes the largest file that is read
 * @throws Error that says why it is not read: without its path where it is no file of that folder or too large, else
 *   that of the system
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
    return undefined // There is nothing any more.
  }
}
