/**
 * The logs in the context: `log` (module `app`), `logger(module)`, and the short names of the specification.
 */
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { withRequestId } from '../http/label.ts'
import type { Logger, ModuleLogger } from './logger.ts'

type Context = CoreContext & { readonly log: ModuleLogger }

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
  const complete: unknown = Object.defineProperty(own, 'debugEnabled', { get: () => log.debugEnabled })
  return complete as ModuleLogger // It has every member now.
}
