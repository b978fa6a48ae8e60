/**
 * The path of a listening Unix socket that was passed to this process. Node knows the paths of sockets that it opened
 * itself; the kernel lists all of them.
 */
import { readFileSync, readlinkSync } from 'node:fs'

/**
 * The path of the socket behind a file descriptor. An abstract socket begins with `@`.
 * @returns undefined when it has none, or the system does not tell it
 */
export function socketPath(fd: number): string | undefined {
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))?.[1]
    return inode === undefined ? undefined : pathOf(readFileSync('/proc/self/net/unix', 'utf8'), inode)
  } catch {
    return undefined // Not Linux, or /proc is hidden. Only the log shows the path.
  }
}

/** The lines of the list are: number, references, protocol, flags, type, state, inode, path. */
function pathOf(list: string, inode: string): string | undefined {
  for (const line of list.split('\n')) {
    const match = /^(?:\S+ +){6}(\d+) (.+)$/.exec(line)
    if (match?.[1] === inode) return match[2]
  }
  return undefined
}
