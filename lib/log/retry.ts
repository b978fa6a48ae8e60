/** When to try again what the disk refused. */

/** The time between two tries, in milliseconds. */
export const retryMs = 1000

/** Whether the last try is so recent that the next one has to wait. A clock that was set back does not prolong it. */
export function isTooEarly(nowMs: number, lastTryMs: number): boolean {
  const passedMs = nowMs - lastTryMs
  return passedMs >= 0 && passedMs < retryMs
}
