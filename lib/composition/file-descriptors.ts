/**
 * The file descriptors of this process, as reported by Linux: the limit, and how many are open.
 *
 * Surprise: at the limit, libuv accepts a connection and closes it without any event, and opening a file fails. So
 * connections are limited before the file descriptors run out.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import type { MetricSources } from '../metrics/table.ts'

/** The file descriptors of a process. */
export interface DescriptorCounts {
  /** The most that it may have open. */
  readonly limit: number
  /** Returns the number of open ones; undefined when the system does not report it. */
  count(): number | undefined
}

/** The minimum of descriptors reserved for files and for Node itself; otherwise a sixteenth of all. */
const minReserve = 64

/** The open descriptors of this process, one per name. */
const openFolder = '/proc/self/fd'

/**
 * Returns the descriptors of this process; undefined when the system does not report its limit.
 * @param limitsFile the limits of a process, in the format of Linux
 */
export function processDescriptors(limitsFile = '/proc/self/limits'): DescriptorCounts | undefined {
  const limit = /^Max open files +(\d+)/m.exec(readIfThere(limitsFile))?.[1]
  if (limit === undefined) return undefined
  return { limit: Number(limit), count: () => countOpen(Number(limit)) }
}

/**
 * Returns a function that reports the descriptors of this process for its metrics. Where counting is slow, it counts at
 * most for a fiftieth of the time.
 */
export function createDescriptorReader(): MetricSources['descriptors'] {
  const descriptors = processDescriptors()
  let open: number | undefined
  let countedAtMs = -Infinity
  return () => {
    if (descriptors === undefined) return undefined
    const nowMs = performance.now()
    if (nowMs - countedAtMs >= (open ?? 0) / 20) [open, countedAtMs] = [descriptors.count(), nowMs]
    return { open, limit: descriptors.limit }
  }
}

/** Returns the maximum of connections that should be open at once, at least 1. Each takes a file descriptor. */
export function maxConnections({ limit }: Pick<DescriptorCounts, 'limit'>): number {
  return Math.max(1, limit - Math.max(minReserve, Math.floor(limit / 16)))
}

/** Since Linux 6.2, the size of the folder is the count. It cannot be read at the limit, or without permission. */
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
