// Deadlines that no test reaches.
import type { Deadlines } from '../../lib/core/deadlines.ts'

/** Ten seconds each. */
export const tenSeconds: Deadlines = {
  headerTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  keepAliveTimeoutMs: 10_000,
  bodyIdleTimeoutMs: 10_000,
  sendIdleTimeoutMs: 10_000,
}
