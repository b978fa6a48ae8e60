/**
 * The logs in the context: `log` (module `app`), `logger(module)`, and the short names of the specification.
 */
import type { LogPort } from '../base/ports.ts'
import { isError } from '../base/reason.ts'
import type { CoreContext } from '../http/context.ts'
import type { Feature } from '../http/features.ts'
import { withRequestId } from '../http/label.ts'
import { titleOf, type Logger, type ModuleLogger } from './logger.ts'

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
  const named = (write: LogPort['error']) => (message: unknown, thrown?: unknown) =>
    write(withRequestId(titleOf(message), ctx), thrown ?? (isError(message) ? message : undefined))
  const own = Object.assign((message: string) => log.info(message), {
    debug: log.debug,
    info: log.info,
    warn: named(log.warn),
    error: named(log.error),
    fatal: named(log.fatal),
  })
  const complete: unknown = Object.defineProperty(own, 'debugEnabled', { get: () => log.debugEnabled })
  return complete as ModuleLogger // It has every member now.
}
