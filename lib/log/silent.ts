/**
 * A module logger that writes nothing, for what looks at an application without running it.
 */
import type { ModuleLogger } from './logger.ts'

const nothing = (): void => {}

/** Takes every line and drops it. */
export const silentLogger: ModuleLogger = Object.assign((): void => {}, {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
  debugEnabled: false,
})
