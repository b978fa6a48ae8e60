import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until something holds that has no event of its own, such as a line in a log file.
 * @throws Error after 10 seconds
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited 10 seconds in vain for: ${holds.toString()}`)
    await delay(5)
  }
}
