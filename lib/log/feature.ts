/**
 * The logs in the context: `log` (module `app`), `logger(module)`, and the short names of the specification.
 */
import type { Context } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { withRequestId } from './line.ts'
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
  const members: Readonly<Record<string, (ctx: Context) => unknown>> = {
    log: (ctx) => namingRequest(log, ctx),
    logger: (ctx) => (module: string) => namingRequest(logger.module(module), ctx),
    ld: () => log.debug,
    l: () => log.info,
    lw: ({ log: { warn } }) => warn,
    le: ({ log: { error } }) => error,
    lf: ({ log: { fatal } }) => fatal,
  }
  return { name: 'log', members: Object.entries(members).map(([name, make]) => ({ name, make })) }
}

/** The log of a module, with the request's id in its lines from WARN up. */
function namingRequest(log: ModuleLogger, ctx: Context): ModuleLogger {
  const own = Object.assign((message: string) => log.info(message), {
    debug: log.debug,
    info: log.info,
    warn: (message: string) => log.warn(withRequestId(message, ctx)),
    error: (message: string, thrown?: unknown) => log.error(withRequestId(message, ctx), thrown),
    fatal: (message: string, thrown?: unknown) => log.fatal(withRequestId(message, ctx), thrown),
  })
  return Object.defineProperty(own, 'debugEnabled', { get: () => log.debugEnabled }) as ModuleLogger // complete now
}
