/**
 * How many connections the limit of open files allows. Each takes a file descriptor.
 *
 * Surprise: at the limit itself, libuv accepts a connection and closes it without any event, and opening a file fails.
 * So connections are limited before the file descriptors run out.
 */
import { readFileSync } from 'node:fs'

/** The fewest descriptors that are reserved for files and for Node itself; else a sixteenth of all. */
const minReserve = 64

/**
 * The most connections that should be open at once, 1 and up; undefined when the system does not tell its limit.
 * @param limitsFile the limits of a process as Linux shows them
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
