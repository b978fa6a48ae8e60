import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until something holds that has no event of its own, such as a line in a log file.
 * @throws Error after half a minute, which a slow machine does not need
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited 30 seconds in vain for: ${holds.toString()}`)
    await delay(5)
  }
}
