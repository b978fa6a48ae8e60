/**
 * Waits for a promise, but no longer than a given time. Leaves no timer behind.
 * @param ms negative values count as 0
 * @returns whether it resolved in time; rejects if it rejected in time. A later rejection is ignored
 */
export async function endsWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
