/**
 * Measures how the work of a function grows with its input. It measures processor time, of this thread where Node can,
 * not wall-clock time, so a busy machine matters little. Of several measurements the least counts, and a row passes as
 * soon as one pair of them does.
 */

/** Work on an input of a size: bytes, entries, or whatever its maker counts. */
export interface Growing {
  readonly name: string
  /** The size of the larger input: the most that a client, a file or a peer may send, where there is a limit. */
  readonly size: number
  /** Makes an input and returns the work on it, which may be run again. */
  readonly prepare: (size: number) => () => unknown
}

/** How many times larger the larger input is. */
const factor = 64
/**
 * Linear work grows 64-fold, several times that where it outgrows a cache, collects garbage or has the system map new
 * memory; quadratic work 4096-fold. This is eight times the one and an eighth of the other.
 */
const mostGrowth = 512
const attempts = 8
/** No more attempts are made after this much processor time, in microseconds. */
const mostMicroseconds = 3_000_000
/** Shorter work is repeated until it has taken this long, in microseconds. */
const leastMicroseconds = 1500
/** The warm-up before the first measurement, in microseconds, so that the engine compiles the code. */
const warmUpMicroseconds = 10_000

/**
 * Measures the growth of the work between a 64th of the size and the size.
 * @returns how many times longer the larger input takes; the first acceptable value, or the least of all attempts
 */
export async function growthOf({ size, prepare }: Growing): Promise<number> {
  const small = prepare(Math.round(size / factor))
  const large = prepare(size)
  await costOf(small, warmUpMicroseconds)
  let smallCost = Infinity
  let largeCost = Infinity
  let spent = 0
  for (let attempt = 0; attempt < attempts && spent < mostMicroseconds; attempt += 1) {
    for (let times = 0; times < 3; times += 1) smallCost = Math.min(smallCost, await costOf(small))
    const cost = await costOf(large)
    spent += cost
    largeCost = Math.min(largeCost, cost)
    if (isLinear(largeCost / smallCost)) break
  }
  return largeCost / smallCost
}

/** Whether the growth is that of linear work. */
export function isLinear(growth: number): boolean {
  return growth < mostGrowth
}

/** Processor time since an earlier measurement: that of this thread, on Node before 23.9 that of the process. */
function usage(before?: NodeJS.CpuUsage): NodeJS.CpuUsage {
  const { threadCpuUsage = process.cpuUsage } = process as { threadCpuUsage?: typeof process.cpuUsage }
  return threadCpuUsage.call(process, before)
}

/** Processor time of one run in microseconds. */
async function costOf(work: () => unknown, microseconds = leastMicroseconds): Promise<number> {
  const before = usage()
  for (let runs = 1; ; runs += 1) {
    const made = work()
    if (made instanceof Promise) await made
    const { user, system } = usage(before)
    if (user + system >= microseconds) return (user + system) / runs
  }
}
