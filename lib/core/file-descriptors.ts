/**
 * How many connections the limit of open files allows. Each takes a file descriptor.
 *
 * Surprise: at the limit itself nothing would be told of it. The library below Node accepts a connection, closes it and
 * reports nothing, and every file that is then opened fails. So connections end before the file descriptors do.
 */
import { readFileSync } from 'node:fs'

/** Descriptors that are kept for files and for Node itself: a sixteenth of all, and so many at least. */
const minReserve = 64

/**
 * The most connections that should be open at once, 1 and up; undefined where the system does not tell its limit.
 * @param limitsFile what Linux tells of a process
 */
export function maxConnections(limitsFile = '/proc/self/limits'): number | undefined {
  const limit = /^Max open files +(\d+)/m.exec(readIfThere(limitsFile))?.[1]
  if (limit === undefined) return undefined
  return Math.max(1, Number(limit) - Math.max(minReserve, Math.floor(Number(limit) / 16)))
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return '' // Only Linux has it.
  }
}
