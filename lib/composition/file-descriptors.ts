/**
 * The file descriptors of this process, as Linux shows them: how many it may have, and how many are open.
 *
 * Surprise: at the limit itself, libuv accepts a connection and closes it without any event, and opening a file fails.
 * So connections are limited before the file descriptors run out.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'

/** The file descriptors of a process. */
export interface DescriptorCounts {
  /** The most that it may have open. */
  readonly limit: number
  /** The number that it has open; undefined when the system does not tell. */
  count(): number | undefined
}

/** The fewest descriptors that are reserved for files and for Node itself; else a sixteenth of all. */
const minReserve = 64

/** The open descriptors of this process, one a name. */
const openFolder = '/proc/self/fd'

/**
 * The descriptors of this process; undefined when the system does not tell its limit.
 * @param limitsFile the limits of a process as Linux shows them
 */
export function processDescriptors(limitsFile = '/proc/self/limits'): DescriptorCounts | undefined {
  const limit = /^Max open files +(\d+)/m.exec(readIfThere(limitsFile))?.[1]
  if (limit === undefined) return undefined
  return { limit: Number(limit), count: () => countOpen(Number(limit)) }
}

/** The most connections that should be open at once, 1 and up. Each takes a file descriptor. */
export function maxConnections({ limit }: DescriptorCounts): number {
  return Math.max(1, limit - Math.max(minReserve, Math.floor(limit / 16)))
}

/** From Linux 6.2 on the size of the folder is their number. At the limit it cannot be read, nor without the right. */
function countOpen(limit: number): number | undefined {
  try {
    const { size } = statSync(openFolder)
    return size > 0 ? size : readdirSync(openFolder).length - 1
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EMFILE' ? limit : undefined
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // Only Linux has it.
  }
}
