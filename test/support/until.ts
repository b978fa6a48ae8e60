import { setTimeout as delay } from 'node:timers/promises'

/**
 * Waits until a condition holds that has no event, such as a line in a log file.
 * @throws Error after 90 seconds, which a slow machine with other work does not need
 */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 90_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`Waited 90 seconds in vain for: ${holds.toString()}`)
    await delay(5)
  }
}
