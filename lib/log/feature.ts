/**
 * What the logs add to the context: `log` (module `app`), `logger(module)`, and the specification's short names.
 */
import type { Feature } from '../http/features.ts'
import type { Logger, ModuleLogger } from './logger.ts'

declare module '../http/context.ts' {
  interface Context {
    /** The log of module `app`: `log(message)` is INFO; `log.debug`, `.info`, `.warn`, `.error`, `.fatal`. */
    readonly log: ModuleLogger
    /** The log of a module. A name of the application's own always passes the trace filter. */
    readonly logger: (module: string) => ModuleLogger
    /** Level 1, DEBUG. */
    readonly ld: (message: string) => void
    /** Level 2, INFO. */
    readonly l: (message: string) => void
    /** Level 3, WARN. */
    readonly lw: (message: string) => void
    /** Level 4, ERROR. */
    readonly le: (message: string, thrown?: unknown) => void
    /** Level 5, FATAL. */
    readonly lf: (message: string, thrown?: unknown) => void
  }
}

/** Makes the feature for a server's general log. */
export function logFeature(logger: Logger): Feature {
  const log = logger.module('app')
  const byModule = (module: string): ModuleLogger => logger.module(module)
  const values = { log, logger: byModule, ld: log.debug, l: log.info, lw: log.warn, le: log.error, lf: log.fatal }
  return { name: 'log', members: Object.entries(values).map(([name, value]) => ({ name, make: () => value })) }
}
